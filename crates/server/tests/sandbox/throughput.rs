//! Many jobs at once, and their load on the login node.

use std::time::Duration;

use crate::{
    ending::command,
    service::{Service, until},
};

const JOBS: usize = 200;
/// The service's own setting for the sandbox's cluster.
const SESSIONS: usize = 2;

#[test]
fn two_hundred_jobs_end_done_with_one_login_per_session() {
    let service = Service::start();
    let before = service.sandbox.logins();
    let ids: Vec<_> = (0..JOBS).map(|_| service.submit(&command("true"))).collect();
    let ended = |status: &str| {
        let path = format!("/jobs?status={status}&limit=200");
        service.get(&path).json()["jobs"].as_array().map_or(0, Vec::len)
    };
    until("all jobs to end", Duration::from_mins(3), || {
        assert_eq!(ended("Error"), 0, "{}", service.get("/jobs?status=Error&limit=1").text);
        ended("Done") == JOBS
    });
    for id in [&ids[0], &ids[JOBS - 1]] {
        assert_eq!(service.status(id)["status"], "Done");
    }

    let logins = service.sandbox.logins() - before;
    assert!(logins <= SESSIONS, "{logins} logins for {JOBS} jobs");
    // A poll is one remote command, whatever the number of jobs.
    let commands = service.metric("tao_slurm_commands_total", "command=\"poll\"");
    let polls = service.metric("tao_slurm_polls_total", "");
    assert!(polls > 0.0);
    assert!(commands <= polls + 1.0, "{commands} commands for {polls} polls");
    let submissions = service.metric("tao_slurm_commands_total", "command=\"submit\"");
    assert!(submissions < 100.0, "{submissions} remote commands to submit {JOBS} jobs");
}
