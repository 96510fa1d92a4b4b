//! Slurm jobs with our names that no service manages.

use serde_json::Value;
use std::time::Duration;

use crate::{
    ending::command,
    service::{Service, until},
    states::running,
};

fn orphans(service: &Service) -> Vec<Value> {
    service.get("/clusters/sandbox").json()["orphans"]["jobs"].as_array().unwrap().clone()
}

#[test]
#[expect(clippy::print_stderr, reason = "shown if the test fails: what else was found")]
fn a_copy_of_a_running_job_is_cancelled_and_a_stranger_with_our_name_is_shown() {
    let service = Service::start();
    // Jobs that another test left in the queue are also unknown to this service.
    service.sandbox.login("scancel --me");
    let (id, _) = running(&service, &command("sleep 300"));
    let submit = |name: &str| {
        service
            .sandbox
            .login(&format!("sbatch --parsable -J '{name}' --begin=now+1hour -o /dev/null --wrap true"))
    };
    let copy = submit(&format!("tao-job-{id}"));
    let stranger = submit("tao-job-00000000-0000-4000-8000-0000000000ff");
    for hostile in
        [format!("tao-job-{id}|x"), format!("tao-job-{id}\nRUNNING|tao-job-{id}"), "tao-".to_owned()]
    {
        submit(&hostile);
    }
    let state =
        |id: &str| service.sandbox.login(&format!("squeue -h -t all -o %T -j {id} 2>/dev/null || true"));
    until("the copy to be canceled", Duration::from_secs(40), || state(&copy) != "PENDING");
    let mut seen = Vec::new();
    until("only the stranger to be left", Duration::from_secs(20), || {
        let orphans = orphans(&service);
        if orphans != seen {
            eprintln!("the orphans: {orphans:?}");
            seen.clone_from(&orphans);
        }
        orphans.len() == 1
            && orphans[0]["slurm_job_id"] == stranger.as_str()
            && orphans[0]["kind"] == "unknown"
    });
    assert_eq!(state(&stranger), "PENDING", "it may be another service's");
    let events = service.get(&format!("/jobs/{id}/events?kind=orphan")).json();
    let events = events["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["data"]["slurm_job_id"]), (1, &Value::from(copy)));
    let counted =
        |name: &str, kind: &str| service.metric(name, &format!("kind=\"{kind}\"")).round().to_string();
    assert_eq!(counted("tao_slurm_orphans_canceled_total", "copy"), "1");
    assert_eq!(counted("tao_slurm_orphans_found_total", "unknown"), "1");
    assert_eq!(service.status(&id)["status"], "Running");
    service.post(&format!("/jobs/{id}/cancel"), "");
    service.wait_ended(&id);
    service.sandbox.login("scancel --me");
}
