//! Jobs that are killed before they write an exit record: only Slurm knows how they ended.

use crate::{
    ending::command,
    service::Service,
    states::{running, slurm_id},
};

#[test]
fn the_message_of_a_killed_batch_script_names_the_signal() {
    let service = Service::start();
    let (id, status) = running(&service, &command("sleep 300"));
    service.sandbox.login(&format!("scancel --signal=KILL --batch {}", slurm_id(&status)));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("Signal 9 ended the job"), "{message}");
}

#[test]
fn the_message_of_a_job_that_ran_out_of_memory_says_so() {
    let service = Service::start();
    let (id, status) = running(&service, &command("sleep 300"));
    service.sandbox.admin(&["complete-job", &slurm_id(&status), "253"]);
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["slurm_state"]),
        (&"Error".into(), &"OUT_OF_MEMORY".into()),
        "{ended}"
    );
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("The job used more memory than it requested"), "{message}");
}
