//! The API's view of a cluster, which it never waits for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{Service, until};

/// Waits until the partitions of the cluster are known.
pub(crate) fn learnt(service: &Service) -> Value {
    let mut list = Value::Null;
    until("the partitions", Duration::from_secs(30), || {
        list = service.get("/clusters/sandbox/partitions").json();
        list["fetched_on"].is_string()
    });
    list
}

fn partition<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["partitions"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn the_partitions_match_the_real_slurm() {
    let service = Service::start();
    let list = learnt(&service);
    let (polar, long, cpu) = (partition(&list, "polar"), partition(&list, "long"), partition(&list, "cpu"));
    assert_eq!((&polar["is_default"], &polar["time_limit_hours"]), (&json!(true), &json!(4.0)));
    assert_eq!((&polar["nodes"], &polar["gpus_per_node"]), (&json!(4), &json!(8)));
    assert_eq!((&long["time_limit_hours"], &cpu["gpus_per_node"]), (&json!(168.0), &json!(0)));
    let states = polar["nodes_by_state"].as_object().unwrap();
    assert_eq!(states.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 4, "{polar}");
    assert_eq!(list["enforce_all_limits"], true, "EnforcePartLimits of the sandbox");

    let cluster = service.get("/clusters/sandbox").json();
    assert_eq!(cluster["state"], "ok", "{cluster}");
    assert!(cluster["login_hosts"].as_array().unwrap().iter().any(|host| host["state"] == "up"), "{cluster}");
    assert!(cluster["ssh"]["commands_total"].as_u64().unwrap() >= 1, "{cluster}");
    assert!(!cluster.to_string().contains("id_ed25519"), "no path of a key: {cluster}");
}

#[test]
fn jobs_are_checked_against_the_partition_limits_of_the_cluster() {
    let service = Service::start();
    learnt(&service);
    let refused = |resources: Value, partition: &str| {
        let body =
            json!({"command": "true", "resources": resources, "backend_details": {"partition": partition}});
        let answer = service.post("/jobs", &body.to_string());
        assert_eq!(answer.status, 422, "{}", answer.text);
        answer.json()["errors"][0]["detail"].as_str().unwrap().to_owned()
    };
    let detail = refused(json!({"time_hours": 12}), "polar");
    assert!(detail.contains("partition polar allows 4 (sinfo") && detail.contains("long"), "{detail}");
    let detail = refused(json!({"time_hours": 12}), "polar,polar3,polar4,grizzly");
    assert!(detail.contains("max_time_hours"), "{detail}");
    let detail = refused(json!({"gpus_per_node": 16, "max_num_gpus_per_node": 16}), "polar");
    assert!(detail.contains("has more than 8"), "{detail}");
    let detail = refused(json!({"num_gpus": 1000}), "polar");
    assert!(detail.contains("partition polar has 4") && detail.contains("at most 32 GPUs"), "{detail}");
    let long =
        json!({"command": "true", "resources": {"time_hours": 12}, "backend_details": {"partition": "long"}});
    let ended = service.wait_ended(&service.submit(&long));
    assert_eq!(ended["status"], "Done", "Slurm itself takes what was let through: {ended}");
}

#[test]
fn requests_are_answered_at_once_while_both_login_hosts_are_frozen() {
    let service = Service::start();
    learnt(&service);
    let frozen = service.sandbox.freeze_logins();
    for path in ["/clusters", "/clusters/sandbox", "/clusters/sandbox/partitions", "/jobs"] {
        // One that waited for the cluster would be given up by the service.
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    drop(frozen);
}
