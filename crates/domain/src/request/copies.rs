//! Copies of a service, and HAProxy in front of them. Each is a program of the job like any other.

use std::fmt::Write as _;

use secrecy::ExposeSecret as _;
use slurm::ComponentName;

use super::{
    component::{JobComponent, variable},
    component_body::ComponentRequest,
    component_settings::ComponentSettings,
    container::image,
    secret::Secrets,
    service::{Ready, ReadyBy, ServicePort, ServiceSettings},
};
use crate::violation::Faults;

const MOST_COPIES: u32 = 20;

/// The programs of a service: itself, or its copies, and then HAProxy if it is asked for.
pub(super) fn copies(
    service: JobComponent,
    asked: &ComponentRequest,
    at: &str,
    secrets: &mut Secrets,
    faults: &mut Faults,
) -> Vec<JobComponent> {
    let count =
        asked.replicas.map_or(1, |count| faults.within(&format!("{at}/replicas"), count, 1..=MOST_COPIES));
    if asked.balance.is_none() && count == 1 || count > MOST_COPIES {
        return vec![service];
    }
    if asked.balance.is_some() && service.service.port.is_none() {
        let detail = "needs a service with a port: give it `port`, or `ready` with http or tcp";
        faults.add(format!("{at}/balance"), "contradiction", detail);
        return Vec::new();
    }
    let secret = secrets.components.remove(&service.name);
    let mut list = Vec::new();
    for number in 0..count {
        let Some(name) =
            faults.parse::<ComponentName>(&format!("{at}/name"), &format!("{}-{number}", service.name))
        else {
            return Vec::new();
        };
        if let Some(secret) = &secret {
            let values = secret.iter().map(|(key, value)| (key.clone(), value.expose_secret().into()));
            secrets.components.insert(name.clone(), values.collect());
        }
        list.push(JobComponent { name, copy_of: Some(service.name.clone()), ..service.clone() });
    }
    if let Some(balance) = &asked.balance {
        let image =
            balance.image.as_deref().and_then(|text| image(text, &format!("{at}/balance/image"), faults));
        let first = list.first().map(|first| first.name.clone());
        list.push(JobComponent {
            text: haproxy(&service, &list),
            own: ComponentSettings { on_node: image.is_none(), image, ..ComponentSettings::default() },
            service: ServiceSettings {
                port: Some(ServicePort::Own),
                ready: service.service.ready.as_ref().map(through_haproxy),
                max_restarts: service.service.max_restarts,
            },
            balances: first,
            nodes: 1,
            launcher: Some(super::launcher::Launcher::Plain {}),
            ..service
        });
    }
    list
}

/// It is ready when one of the copies answers through it.
fn through_haproxy(of_copies: &Ready) -> Ready {
    let by = match &of_copies.by {
        // How many workers a copy has is its own matter.
        ReadyBy::Http { path, status, .. } => {
            ReadyBy::Http { path: path.clone(), status: *status, body: None }
        }
        ReadyBy::Tcp | ReadyBy::File(_) | ReadyBy::LogPattern(_) => ReadyBy::Tcp,
    };
    // While all copies start again, HAProxy has nothing to answer. Its own end is noticed.
    Ready { by, live_seconds: 0, live_failures: 0, ..of_copies.clone() }
}

/// A script that runs HAProxy in the foreground. It reads the names of nodes and the ports from the environment. Answers of models take long.
/// A request to a copy that ends before it answers, or says that it is still loading (503), goes to another one, if it fits into a buffer.
fn haproxy(service: &JobComponent, copies: &[JobComponent]) -> String {
    let ready = service.service.ready.as_ref().map(|ready| &ready.by);
    let mode = if matches!(ready, Some(ReadyBy::Tcp)) { "tcp" } else { "http" };
    let mut text = format!(
        "PATH=$PATH:/usr/local/sbin:/usr/sbin\n\
         exec haproxy -db -f /dev/stdin <<'END'\n\
         global\n    log stdout format raw local0\n    maxconn 4096\n    tune.bufsize 262144\n\
         defaults\n    mode {mode}\n    log global\n    option {mode}log\n    option redispatch 1\n    retries 3\n    \
         timeout connect 10s\n    timeout client 1d\n    timeout server 1d\n    timeout queue 1d\n\
         listen {}\n    bind \":${{PORT}}\"\n    balance leastconn\n",
        service.name
    );
    if mode == "http" {
        text.push_str("    option http-buffer-request\n    retry-on conn-failure empty-response 503\n");
    }
    if let Some(ReadyBy::Http { path, status, .. }) = ready {
        // Within single quotes only these end a word.
        let path = path.replace('\'', "%27");
        let _ = write!(
            text,
            "    option httpchk\n    http-check send meth GET uri '{path}'\n    http-check expect status {status}\n"
        );
    }
    text.push_str("    default-server check inter 5s fastinter 1s downinter 1s fall 3 rise 1\n");
    for copy in copies {
        let variable = variable(&copy.name);
        let _ = writeln!(text, "    server {} \"${{{variable}_HOST}}:${{{variable}_PORT}}\"", copy.name);
    }
    text.push_str("END\n");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use test_case::test_case;

    use super::super::components::{components, place};
    use super::*;

    /// The programs of a request with this service and a step, on so many nodes, and the places of its faults.
    fn read(more: &Value, nodes: u32) -> (Vec<JobComponent>, Secrets, Vec<String>) {
        let mut service = json!({"name": "model", "command": "serve", "secret_env": {"HF_TOKEN": "hunter2"}});
        service.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let judge = json!({"name": "judge", "command": "serve"});
        let services: Vec<ComponentRequest> = serde_json::from_value(json!([service, judge])).unwrap();
        let steps: Vec<ComponentRequest> =
            serde_json::from_value(json!([{"name": "score", "command": "true"}])).unwrap();
        let (mut secrets, mut faults) = (Secrets::default(), Faults::default());
        let mut list = components(&services, &steps, &mut secrets, &mut faults);
        place(&mut list, nodes, &mut faults);
        (list, secrets, faults.0.into_iter().map(|fault| fault.pointer).collect())
    }

    #[test]
    fn copies_have_nodes_of_their_own_and_haproxy_shares_those_of_the_first() {
        let model = json!({
            "nodes": 2, "replicas": 2, "max_restarts": 1, "balance": {},
            "ready": {"http": "/health", "body": {"pattern": "worker"}},
        });
        let (list, secrets, faults) = read(&model, 6);
        assert!(faults.is_empty(), "{faults:?}");
        let placed: Vec<_> = list.iter().map(|one| (one.name.as_str(), one.first_node, one.nodes)).collect();
        assert_eq!(
            placed,
            [("model-0", 0, 2), ("model-1", 2, 2), ("model", 0, 1), ("judge", 4, 1), ("score", 5, 1)]
        );
        assert_eq!(
            secrets.components.keys().map(ComponentName::as_str).collect::<Vec<_>>(),
            ["model-0", "model-1"]
        );
        let haproxy = &list[2];
        assert!(haproxy.own.on_node && haproxy.own.secret_env.is_empty());
        let ready = haproxy.service.ready.as_ref().unwrap();
        assert_eq!(ready.by, ReadyBy::Http { path: "/health".to_owned(), status: 200, body: None });
        assert_eq!(
            haproxy.text,
            r#"PATH=$PATH:/usr/local/sbin:/usr/sbin
exec haproxy -db -f /dev/stdin <<'END'
global
    log stdout format raw local0
    maxconn 4096
    tune.bufsize 262144
defaults
    mode http
    log global
    option httplog
    option redispatch 1
    retries 3
    timeout connect 10s
    timeout client 1d
    timeout server 1d
    timeout queue 1d
listen model
    bind ":${PORT}"
    balance leastconn
    option http-buffer-request
    retry-on conn-failure empty-response 503
    option httpchk
    http-check send meth GET uri '/health'
    http-check expect status 200
    default-server check inter 5s fastinter 1s downinter 1s fall 3 rise 1
    server model-0 "${MODEL_0_HOST}:${MODEL_0_PORT}"
    server model-1 "${MODEL_1_HOST}:${MODEL_1_PORT}"
END
"#
        );
    }

    #[test]
    fn without_haproxy_there_are_only_the_copies() {
        let (list, _, faults) = read(&json!({"replicas": 2, "port": 0}), 4);
        assert!(faults.is_empty(), "{faults:?}");
        let names: Vec<_> = list.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["model-0", "model-1", "judge", "score"]);
        let (list, _, faults) = read(&json!({"replicas": 1}), 3);
        assert!(faults.is_empty() && list[0].name.as_str() == "model");
    }

    #[test]
    fn a_path_stays_one_word_of_the_configuration() {
        let (list, ..) = read(&json!({"replicas": 2, "balance": {}, "ready": {"http": "/a?x='$HOME'#"}}), 4);
        assert!(list[2].text.contains("uri '/a?x=%27$HOME%27#'\n"), "{}", list[2].text);
    }

    #[test_case(&json!({"replicas": 0}), "/services/0/replicas"; "none")]
    #[test_case(&json!({"replicas": 21}), "/services/0/replicas"; "many")]
    #[test_case(&json!({"replicas": u32::MAX}), "/services/0/replicas"; "more than fit into memory")]
    #[test_case(&json!({"replicas": 2, "balance": {}}), "/services/0/balance"; "without a port")]
    #[test_case(&json!({"port": 0, "balance": {"image": "a b"}}), "/services/0/balance/image"; "no image")]
    #[test_case(&json!({"replicas": 20, "balance": {}, "port": 0, "name": "m", "nodes": 1}), ""; "all places")]
    fn what_cannot_be_copied_is_refused_with_its_place(model: &Value, pointer: &str) {
        let faults = read(model, 30).2;
        assert_eq!(faults.first().map_or("", String::as_str), pointer, "{faults:?}");
    }

    #[test]
    fn names_of_copies_are_names_like_others() {
        let services = json!([
            {"name": "model", "command": "serve", "replicas": 2},
            {"name": "model-1", "command": "serve"},
        ]);
        let services: Vec<ComponentRequest> = serde_json::from_value(services).unwrap();
        let steps: Vec<ComponentRequest> =
            serde_json::from_value(json!([{"name": "score", "command": "true"}])).unwrap();
        let mut faults = Faults::default();
        components(&services, &steps, &mut Secrets::default(), &mut faults);
        assert_eq!(faults.0[0].pointer, "/services");
    }
}
