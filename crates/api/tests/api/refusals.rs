//! Each operation of the document, by everybody who may not call it. Nothing here names an operation that the document
//! can tell about: a new one without a scope, or of which nobody said whose it is, fails.

use axum::{body::Body, http::Request};
use chrono::TimeDelta;
use domain::Clock;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    document::{is_secured, operations},
    support::{Answer, TestApi},
    webhook::{give_up, with_webhook},
};

/// Whose the things are that an operation shows or changes.
#[derive(Debug, PartialEq)]
enum Ownership {
    /// One job: of the caller, or it does not exist.
    OneJob,
    /// The caller's jobs.
    OwnJobs,
    /// What happened to the caller's jobs.
    OwnEvents,
    /// What the webhooks of the caller's jobs were not told.
    OwnDeadLetters,
    /// A job that does not exist yet.
    NewJob,
    /// Everybody's.
    Shared,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    /// The one scope that it needs; none when it needs no token.
    scope: Option<String>,
}

impl Operation {
    fn all() -> Vec<Self> {
        let all = operations().into_iter().map(|(method, path, operation)| {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let scope = is_secured(&operation).then(|| Self::scope_of(&id, &operation));
            Self { id, method: method.to_uppercase(), path, scope }
        });
        all.collect()
    }

    fn scope_of(id: &str, operation: &Value) -> String {
        // There may be several ways to show a token, and each needs the same.
        let ways = operation["security"].as_array().unwrap().iter();
        let mut scopes: Vec<&str> = ways
            .map(|way| {
                let named: Vec<&Value> = way.as_object().unwrap().values().collect();
                let [Value::Array(scopes)] = named.as_slice() else { panic!("{id}: one way at a time") };
                let [scope] = scopes.as_slice() else { panic!("{id} does not say which scope it needs") };
                scope.as_str().unwrap()
            })
            .collect();
        scopes.dedup();
        let [scope] = scopes.as_slice() else { panic!("{id}: one scope, whatever the way: {scopes:?}") };
        (*scope).to_owned()
    }

    fn ownership(&self) -> Ownership {
        match self.id.as_str() {
            _ if self.path.starts_with("/jobs/{id}") => Ownership::OneJob,
            "get_container_job_status" => Ownership::OneJob,
            "create_job" | "validate_job" | "post_container_job" => Ownership::NewJob,
            "list_events" => Ownership::OwnEvents,
            "list_dead_letters" => Ownership::OwnDeadLetters,
            "list_jobs" => Ownership::OwnJobs,
            "list_clusters"
            | "get_cluster"
            | "list_partitions"
            | "preflight_cluster"
            | "put_enroot_credentials" => Ownership::Shared,
            id => panic!("say in `ownership` whose the things are that {id} shows or changes"),
        }
    }

    /// Whether the job is not in the path: TAO asks by the directory of its results.
    fn named_by_results(&self) -> bool {
        self.id == "get_container_job_status"
    }

    fn request(&self, token: Option<&str>, job: &str) -> Request<Body> {
        let path = self.path.replace("{id}", job).replace("{name}", "dgx");
        let path = if self.named_by_results() { format!("{path}?results_dir=/results/{job}") } else { path };
        let mut request = Request::builder().method(self.method.as_str()).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.header("content-type", "application/json").body(Body::from("{}")).unwrap()
    }
}

/// Tokens of every kind that is refused, and a job of Ann's.
async fn callers(api: &TestApi) -> String {
    let all = "read write";
    for (token, owner, scopes) in [
        ("ann", "ann", all),
        ("bob", "bob", all),
        ("reader", "ann", "read"),
        ("writer", "ann", "write"),
        ("revoked", "ann", "read write admin"),
        ("root", "root", "admin"),
    ] {
        api.token(token, owner, scopes, None).await;
    }
    let now = api.clock.now();
    api.token("expired", "ann", "read write admin", Some(now - TimeDelta::seconds(1))).await;
    let revoked = api.store.list_tokens(None).await.unwrap();
    let revoked = revoked.iter().find(|token| token.name == "revoked").unwrap().id;
    api.store.revoke_token(revoked, now).await.unwrap().unwrap();
    let job = api.call_as("ann", axum::http::Method::POST, "/jobs", Some(&with_webhook())).await;
    give_up(&api.store).await;
    job.json()["id"].as_str().unwrap().to_owned()
}

fn code(answer: &Answer) -> String {
    if answer.bytes.is_empty() { String::new() } else { answer.json()["code"].as_str().unwrap().to_owned() }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn no_operation_serves_anybody_who_may_not_call_it(pool: PgPool) {
    let api = TestApi::guarded(pool);
    let job = callers(&api).await;
    let mut checked = 0;
    for operation in Operation::all() {
        let ask = async |token: Option<&str>| api.verdict(operation.request(token, &job)).await;
        let Some(scope) = operation.scope.as_deref() else {
            let open =
                ["livez", "readyz", "get_metrics", "get_container_liveness", "get_container_readiness"];
            assert!(open.contains(&operation.id.as_str()), "{}", operation.id);
            continue;
        };
        let none = ask(None).await;
        none.problem(401, "unauthorized");
        assert_eq!(none.header("www-authenticate"), r#"Bearer realm="tao-slurm""#, "{}", operation.id);
        for token in ["unknown", "expired", "revoked"] {
            let refused = ask(Some(token)).await;
            refused.problem(401, "unauthorized");
            assert!(
                refused.header("www-authenticate").contains("invalid_token"),
                "{}: {token}",
                operation.id
            );
        }
        let too_little: &[&str] = match scope {
            "read" => &["writer"],
            "write" => &["reader"],
            "admin" => &["reader", "writer", "ann"],
            scope => panic!("{}: nobody knows the scope {scope}", operation.id),
        };
        for token in too_little {
            let refused = ask(Some(token)).await;
            refused.problem(403, "forbidden");
            assert!(refused.header("www-authenticate").contains("insufficient_scope"), "{}", operation.id);
        }
        let told = ask(too_little.first().copied()).await;
        if scope != "admin" {
            assert!(
                told.header("www-authenticate").contains(&format!("scope=\"{scope}\"")),
                "{}",
                operation.id
            );
        }
        // Whoever may is not refused: what is checked here is no wall.
        let allowed = ask(Some(if scope == "admin" { "root" } else { "ann" })).await;
        assert!(![401, 403].contains(&allowed.status.as_u16()), "{}: {}", operation.id, allowed.text());
        assert_ne!(code(&allowed), "job_not_found", "{}", operation.id);
        checked += 1;
    }
    assert!(checked >= 17, "{checked}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_of_somebody_else_is_answered_like_one_that_does_not_exist(pool: PgPool) {
    let api = TestApi::guarded(pool);
    let job = callers(&api).await;
    let nowhere = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let mut checked = 0;
    for operation in Operation::all().into_iter().filter(|operation| operation.scope.is_some()) {
        match operation.ownership() {
            Ownership::OneJob => {
                let theirs = api.verdict(operation.request(Some("bob"), &job)).await;
                theirs.problem(404, "job_not_found");
                let none = api.verdict(operation.request(Some("bob"), nowhere)).await;
                none.problem(404, "job_not_found");
                let detail =
                    |answer: &Answer, id: &str| answer.json()["detail"].as_str().unwrap().replace(id, "");
                assert_eq!(detail(&theirs, &job), detail(&none, nowhere), "{}", operation.id);
                checked += 1;
            }
            Ownership::OwnJobs => {
                assert_eq!(
                    api.get_as("bob", &operation.path).await.json()["jobs"],
                    json!([]),
                    "{}",
                    operation.id
                );
                let own = api.get_as("ann", &operation.path).await;
                assert_eq!(own.json()["jobs"][0]["id"], job, "{}", operation.id);
            }
            Ownership::OwnEvents => {
                assert_eq!(
                    api.get_as("bob", &operation.path).await.json()["events"],
                    json!([]),
                    "{}",
                    operation.id
                );
                let own = api.get_as("ann", &operation.path).await;
                assert_eq!(own.json()["events"][0]["job_id"], job, "{}", own.text());
            }
            Ownership::OwnDeadLetters => {
                let theirs = api.get_as("bob", &operation.path).await.json();
                assert_eq!(theirs["dead_letters"], json!([]), "{}", operation.id);
                let own = api.get_as("ann", &operation.path).await;
                assert_eq!(own.json()["dead_letters"][0]["job_id"], job, "{}", own.text());
            }
            Ownership::NewJob | Ownership::Shared => {}
        }
    }
    assert!(checked >= 10, "{checked}");
    // The job is as it was: none of it reached it.
    assert_eq!(api.get_as("ann", &format!("/jobs/{job}")).await.json()["status"], "Pending");
}
