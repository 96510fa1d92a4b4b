//! A job that does not use its GPUs.

use super::*;

#[test]
fn a_job_whose_gpus_are_idle_for_too_long_is_paused() {
    let mut job = submitted_job();
    job.spec.idle_policy =
        serde_json::from_str(r#"{"below_percent": 5, "minutes": 2, "action": "pause"}"#).unwrap();
    let slurm_id = job.attempt.as_ref().unwrap().slurm_id.unwrap();
    let running = row(&job, SlurmState::Running, "None");
    let after = |job: &Job, restart, at| {
        let gpu = remote::GpuUse { index: 0, samples: 6, sum: 0, most: 0, most_memory: 1, memory: 2 };
        let gpus = vec![remote::GpuUse { samples: u32::try_from(at / 10).unwrap(), ..gpu }];
        let node = remote::NodeUse { name: "node01".to_owned(), cpu_seconds: 1, most_memory: 1, gpus };
        let marker = remote::UsageMarker { slurm_id, restart, at, began: 0, nodes: vec![node] };
        let reports = remote::Reports { usage: Some(marker), ..remote::Reports::default() };
        let seen = Observation {
            queue: Some(&running),
            queue_answered: true,
            reports: Some(&reports),
            ..Observation::default()
        };
        see(job, &seen, at)
    };
    let warned = after(&job, 0, 60).unwrap();
    assert!(!warned.step_due && warned.job.desired == DesiredState::Run);
    assert!(warned.job.message.ends_with("; after 2 min the job is paused."), "{}", warned.job.message);
    let paused = after(&warned.job, 0, 120).unwrap();
    assert!(paused.step_due, "the worker ends it now");
    assert_eq!((paused.job.desired, paused.job.status), (DesiredState::Pause, Status::Pausing));
    assert!(
        paused.job.message.starts_with("No GPU has reached 5 % for 2 min, since 1970"),
        "{}",
        paused.job.message
    );
    assert!(after(&warned.job, 1, 120).is_none(), "a marker of another run says nothing");
}
