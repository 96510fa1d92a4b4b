//! Each operation of the document, by everybody who may not call it. Nothing here names an operation that the document
//! can tell about: a new one without a scope, or of which nobody said whose it is, fails.

use std::{collections::HashMap, sync::Arc};

use api::Limits;
use axum::{
    body::Body,
    http::{Method, Request},
};
use chrono::TimeDelta;
use domain::Clock;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    document::{is_secured, operations},
    support::{Answer, Issuer, TestApi, claims},
    webhook::{give_up, with_webhook},
};

/// Whose the things are that an operation shows or changes.
#[derive(Debug, PartialEq)]
enum Ownership {
    /// One job: of the caller, or it does not exist.
    OneJob,
    /// The caller's jobs.
    OwnJobs,
    /// The caller's jobs, as numbers.
    OwnFigures,
    /// What happened to the caller's jobs.
    OwnEvents,
    /// What the webhooks of the caller's jobs were not told.
    OwnDeadLetters,
    /// One pipeline: of the caller, or it does not exist.
    OnePipeline,
    /// The caller's pipelines.
    OwnPipelines,
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
            "get_container_job_status" | "pause_container_job" => Ownership::OneJob,
            _ if self.path.starts_with("/pipelines/{id}") => Ownership::OnePipeline,
            "list_pipelines" => Ownership::OwnPipelines,
            "create_job" | "validate_job" | "post_container_job" | "create_pipeline" => Ownership::NewJob,
            "list_events" => Ownership::OwnEvents,
            "list_dead_letters" => Ownership::OwnDeadLetters,
            "list_jobs" => Ownership::OwnJobs,
            "get_stats" => Ownership::OwnFigures,
            "list_clusters"
            | "get_me"
            | "list_tokens"
            | "create_token"
            | "revoke_token"
            | "get_cluster"
            | "list_partitions"
            | "preflight_cluster"
            | "create_cluster"
            | "replace_cluster"
            | "delete_cluster"
            | "put_enroot_credentials" => Ownership::Shared,
            id => panic!("say in `ownership` whose the things are that {id} shows or changes"),
        }
    }

    /// Whether the job is not in the path: TAO asks by the directory of its results.
    fn named_by_results(&self) -> bool {
        self.id == "get_container_job_status"
    }

    fn request(&self, token: Option<&str>, job: &str) -> Request<Body> {
        let path = self
            .path
            .replace("{id}", job)
            .replace("{task}", "0")
            .replace("{name}", "dgx")
            .replace("{token}", job);
        let path = if self.named_by_results() { format!("{path}?results_dir=/results/{job}") } else { path };
        let path = if self.id == "search_job_logs" { format!("{path}?q=x") } else { path };
        let mut request = Request::builder().method(self.method.as_str()).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        // TAO names the job to pause in the body.
        let body = if self.id == "pause_container_job" { json!({"job_id": job}) } else { json!({}) };
        request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
    }
}

/// Who calls, with tokens of one kind: of every sort that is refused, and some that are not.
struct Callers {
    api: TestApi,
    bearers: HashMap<&'static str, String>,
    /// With what problem each is refused who is nobody.
    nobodies: Vec<(&'static str, &'static str)>,
    /// Ann's, in a pipeline with the same id.
    job: String,
}

/// The callers whose token is good: whose, and what for.
const GOOD: [(&str, &str, &str); 5] = [
    ("ann", "ann", "read write"),
    ("bob", "bob", "read write"),
    ("reader", "ann", "read"),
    ("writer", "ann", "write"),
    ("root", "root", "admin"),
];

impl Callers {
    /// With tokens that the service has made.
    async fn known(pool: PgPool) -> Self {
        let api = TestApi::guarded(pool);
        for (token, owner, scopes) in GOOD {
            api.token(token, owner, scopes, None).await;
        }
        let (now, all) = (api.clock.now(), "read write admin");
        api.token("expired", "ann", all, Some(now - TimeDelta::seconds(1))).await;
        api.token("revoked", "ann", all, None).await;
        let revoked = api.store.list_tokens(None).await.unwrap();
        let revoked = revoked.iter().find(|token| token.name == "revoked").unwrap().id;
        api.store.revoke_token(revoked, now).await.unwrap().unwrap();
        let nobodies = ["unknown", "expired", "revoked"].map(|token| (token, "unauthorized")).to_vec();
        let names = GOOD.iter().map(|(token, ..)| *token).chain(nobodies.iter().map(|(token, _)| *token));
        let bearers = names.map(|token| (token, token.to_owned())).collect();
        Self { api, bearers, nobodies, job: String::new() }.with_job().await
    }

    /// With tokens that an issuer has signed.
    async fn signed(pool: PgPool) -> Self {
        let issuer = Arc::new(Issuer::new());
        let api = TestApi::trusting(pool, &issuer, Limits::default());
        let now = api.clock.now();
        let mut bearers: HashMap<_, _> =
            GOOD.map(|(token, owner, scopes)| (token, issuer.sign(&claims(owner, scopes, now)))).into();
        let all = |change: fn(&mut Value)| {
            let mut claims = claims("ann", "read write admin", now);
            change(&mut claims);
            issuer.sign(&claims)
        };
        let good = all(|_| ());
        bearers.insert("expired", all(|claims| claims["exp"] = 1.into()));
        bearers.insert("early", all(|claims| claims["nbf"] = 4_000_000_000_u64.into()));
        bearers.insert("foreign", all(|claims| claims["iss"] = "somebody".into()));
        bearers.insert("misdirected", all(|claims| claims["aud"] = "somebody".into()));
        bearers.insert("forged", Issuer::new().sign(&claims("ann", "read write admin", now)));
        bearers.insert("unsigned", format!("{}.", good.rsplit_once('.').unwrap().0));
        bearers.insert("unknown", "unknown".to_owned());
        let nobodies = vec![
            ("expired", "token_expired"),
            ("early", "token_not_yet_valid"),
            ("foreign", "token_wrong_issuer"),
            ("misdirected", "token_wrong_audience"),
            ("forged", "token_signature"),
            ("unsigned", "token_signature"),
            ("unknown", "unauthorized"),
        ];
        Self { api, bearers, nobodies, job: String::new() }.with_job().await
    }

    async fn with_job(mut self) -> Self {
        "01a21687-3d58-727b-af43-d5f40bfcf423".clone_into(&mut self.job);
        let mut job = with_webhook();
        job["id"] = json!(self.job);
        let pipeline = json!({"id": self.job, "jobs": {"one": job}});
        let stored =
            self.api.call_as(&self.bearers["ann"], Method::POST, "/pipelines", Some(&pipeline)).await;
        assert_eq!(stored.status, 201, "{}", stored.text());
        give_up(&self.api.store).await;
        self
    }

    async fn ask(&self, operation: &Operation, caller: Option<&str>, job: &str) -> Answer {
        self.api.verdict(operation.request(caller.map(|caller| self.bearers[caller].as_str()), job)).await
    }

    async fn get(&self, caller: &str, path: &str) -> Answer {
        self.api.get_as(&self.bearers[caller], path).await
    }
}

fn code(answer: &Answer) -> String {
    if answer.bytes.is_empty() { String::new() } else { answer.json()["code"].as_str().unwrap().to_owned() }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn no_operation_serves_an_unauthorized_caller(pool: PgPool) {
    everybody_is_refused_who_may_not_call(&Callers::known(pool).await).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn no_operation_serves_a_signed_token_that_does_not_allow_it(pool: PgPool) {
    everybody_is_refused_who_may_not_call(&Callers::signed(pool).await).await;
}

async fn everybody_is_refused_who_may_not_call(callers: &Callers) {
    let mut checked = 0;
    for operation in Operation::all() {
        let ask = async |token: Option<&str>| callers.ask(&operation, token, &callers.job).await;
        let Some(scope) = operation.scope.as_deref() else {
            let open =
                ["livez", "readyz", "get_metrics", "get_container_liveness", "get_container_readiness"];
            assert!(open.contains(&operation.id.as_str()), "{}", operation.id);
            continue;
        };
        let none = ask(None).await;
        none.problem(401, "unauthorized");
        assert_eq!(none.header("www-authenticate"), r#"Bearer realm="tao-slurm""#, "{}", operation.id);
        for (token, problem) in &callers.nobodies {
            let refused = ask(Some(token)).await;
            refused.problem(401, problem);
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
    assert!(checked >= 20, "{checked}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_of_another_owner_is_answered_like_one_that_does_not_exist(pool: PgPool) {
    nobody_sees_what_is_not_his(&Callers::known(pool).await).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_of_another_signed_token_is_answered_like_one_that_does_not_exist(pool: PgPool) {
    nobody_sees_what_is_not_his(&Callers::signed(pool).await).await;
}

async fn nobody_sees_what_is_not_his(callers: &Callers) {
    let job = callers.job.as_str();
    let nowhere = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let mut checked = 0;
    for operation in Operation::all().into_iter().filter(|operation| operation.scope.is_some()) {
        match operation.ownership() {
            one @ (Ownership::OneJob | Ownership::OnePipeline) => {
                let code = if one == Ownership::OneJob { "job_not_found" } else { "pipeline_not_found" };
                let theirs = callers.ask(&operation, Some("bob"), job).await;
                theirs.problem(404, code);
                let none = callers.ask(&operation, Some("bob"), nowhere).await;
                none.problem(404, code);
                let detail =
                    |answer: &Answer, id: &str| answer.json()["detail"].as_str().unwrap().replace(id, "");
                assert_eq!(detail(&theirs, job), detail(&none, nowhere), "{}", operation.id);
                checked += 1;
            }
            Ownership::OwnJobs => {
                assert_eq!(
                    callers.get("bob", &operation.path).await.json()["jobs"],
                    json!([]),
                    "{}",
                    operation.id
                );
                let own = callers.get("ann", &operation.path).await;
                assert_eq!(own.json()["jobs"][0]["id"], job, "{}", operation.id);
            }
            Ownership::OwnFigures => {
                // The window ends before the present.
                callers.api.clock.advance(TimeDelta::seconds(1));
                let theirs = callers.get("bob", &operation.path).await.json();
                assert_eq!((&theirs["totals"]["submitted"], &theirs["now"]), (&json!(0), &json!([])));
                let own = callers.get("ann", &operation.path).await.json();
                assert_eq!(own["totals"]["submitted"], 1, "{own}");
                assert_eq!(own["now"], json!([{"status": "Pending", "jobs": 1}]), "{own}");
            }
            Ownership::OwnPipelines => {
                let theirs = callers.get("bob", &operation.path).await.json();
                assert_eq!(theirs["pipelines"], json!([]), "{}", operation.id);
                let own = callers.get("ann", &operation.path).await;
                assert_eq!(own.json()["pipelines"][0]["id"], job, "{}", own.text());
            }
            Ownership::OwnEvents => {
                assert_eq!(
                    callers.get("bob", &operation.path).await.json()["events"],
                    json!([]),
                    "{}",
                    operation.id
                );
                let own = callers.get("ann", &operation.path).await;
                assert_eq!(own.json()["events"][0]["job_id"], job, "{}", own.text());
            }
            Ownership::OwnDeadLetters => {
                let theirs = callers.get("bob", &operation.path).await.json();
                assert_eq!(theirs["dead_letters"], json!([]), "{}", operation.id);
                let own = callers.get("ann", &operation.path).await;
                assert_eq!(own.json()["dead_letters"][0]["job_id"], job, "{}", own.text());
            }
            Ownership::NewJob | Ownership::Shared => {}
        }
    }
    assert!(checked >= 10, "{checked}");
    // The job is as it was: none of it reached it.
    assert_eq!(callers.get("ann", &format!("/jobs/{job}")).await.json()["status"], "Pending");
}
