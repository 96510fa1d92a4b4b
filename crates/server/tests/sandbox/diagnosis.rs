//! The first cause of a failure on a real cluster: one rank fails, and the others say much about that.

use serde_json::json;

use crate::{launchers, service::Service};

/// Rank 1 fails after many lines; the others wait for it, and end in errors of gloo.
const PROGRAM: &str = r#"
import datetime, sys, time, torch, torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank = dist.get_rank()
for step in range(20_000):
    print(f"step {step}: loss {1 / (step + 1):.4f}, error 0.{step % 10}, failed reads: 0", file=sys.stderr)
if rank == 1:
    raise LookupError("the sample index 4711 has no label")
# Torchrun tells the time of a failure in whole seconds.
time.sleep(3)
total = torch.zeros(1)
for _ in range(1000):
    dist.all_reduce(total)
"#;

#[test]
fn of_several_ranks_on_two_nodes_the_one_that_failed_first_is_blamed() {
    let service = Service::start();
    if !launchers::are_installed(&service) {
        return;
    }
    let id = service.submit(&json!({
        "command": "exec python3 $TAO_JOB_FILES/job.py",
        "launcher": {"kind": "torchrun", "rendezvous": "static", "args": ["--monitor_interval=0.2"]},
        "setup": launchers::setup(),
        "files": {"job.py": {"text": PROGRAM}},
        "resources": {"num_nodes": 2, "gpus_per_node": 1, "cpus_per_task": 1, "memory": "16G", "time_hours": 0.1},
    }));
    let job = service.wait_ended(&id);
    assert_eq!(job["status"], "Error", "{job}");
    let diagnosis = service.get(&format!("/jobs/{id}/diagnosis")).json();
    let first = &diagnosis["first"];
    let line = first["line"].as_str().unwrap_or_default();
    assert!(line.contains("LookupError: the sample index 4711 has no label"), "{diagnosis}\n{job}");
    assert_eq!(diagnosis["rank"], 1, "{diagnosis}");
    assert_eq!(diagnosis["node"], job["nodes"][1], "{diagnosis}");
    assert_eq!((&diagnosis["rule"], &job["failure"]["rule"]), (&json!("exception"), &json!("exception")));
    let stream = first["log"].as_str().unwrap().trim_start_matches("main.");
    let offset = first["offset"].as_u64().unwrap();
    assert!(offset > 1_000_000, "many lines came before: {diagnosis}");
    let read = service.get(&format!("/jobs/{id}/logs?stream={stream}&offset={offset}&limit=2000")).text;
    assert!(read.starts_with(line), "{read}\n{line}");
    assert!(job["message"].as_str().unwrap().contains("LookupError"), "{job}");
}
