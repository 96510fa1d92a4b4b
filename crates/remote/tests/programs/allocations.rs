use remote::{Allocations, RemoteCommand};
use slurm::FailureClass;

use crate::site::{Site, id, key};

fn asked() -> Allocations {
    Allocations { jobs: vec![(id(7), key("tao-job-a")), (id(8), key("tao-job-b"))] }
}

#[test]
fn each_run_of_a_job_is_told_and_of_an_array_each_run_of_each_task() {
    let site = Site::new();
    // A requeued job, and an array whose tasks have ids of their own. The last row has the id of one of ours and another name.
    site.program(
        "sacct",
        r#"[ "$*" = "-D -P -n --units=K --delimiter=$(printf '\037') -o MaxRSS,JobIDRaw,State,Start,ElapsedRaw,Partition,AllocTRES,TotalCPU,JobName -j 7,8" ] || exit 9
row() { local IFS=$(printf '\037'); printf '%s\n' "$*"; }
row '' 7 NODE_FAIL 1700000000 30 gpu cpu=4,gres/gpu=2,node=1 00:01:02 tao-job-a
row '' 7.batch CANCELLED 1700000000 30 '' cpu=4,gres/gpu=2,node=1 00:00:00 batch
row '' 7 COMPLETED 1700000100 61 gpu cpu=4,gres/gpu=2,node=1 00:01:02 tao-job-a
row 2048K 7.batch COMPLETED 1700000100 61 '' cpu=4,gres/gpu=2,node=1 00:01:02 batch
row 524288K 7.0 COMPLETED 1700000100 61 '' cpu=4,gres/gpu=2,node=1 00:01:02 tao-job-b
row 99K 7.1 COMPLETED 1700000100 61 '' cpu=4,gres/gpu=2,node=1 00:01:02 bash
row '' 9 COMPLETED 1700000000 10 cpu cpu=1,node=1 00:01:02 tao-job-b
row '' 8 RUNNING 1700000050 5 cpu cpu=1,node=1 00:01:02 tao-job-b
row '' 7 COMPLETED 1600000000 99 cpu cpu=1,node=1 00:01:02 somebody-elses"#,
    );
    let [requeued, array] = site.run(&asked()).try_into().unwrap();
    let told = requeued.runs.iter().map(|run| (run.start.unwrap(), run.elapsed, run.gpus, run.most_memory));
    let expected = [(1_700_000_000, 30, 2, None), (1_700_000_100, 61, 2, Some(512))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(requeued.is_over());
    let told = array.runs.iter().map(|run| (run.id, run.most_memory)).collect::<Vec<_>>();
    assert_eq!(told, [(id(9), None), (id(8), None)], "no run has the memory of another");
    assert!(!array.is_over(), "one task runs");
}

#[test]
fn a_job_that_accounting_does_not_know_yet_is_not_over() {
    let site = Site::new();
    site.program("sacct", "true");
    assert!(site.run(&asked()).iter().all(|answer| answer.runs.is_empty() && !answer.is_over()));
}

#[test]
fn an_answer_that_was_cut_is_about_no_job_the_whole_answer() {
    let site = Site::new();
    site.program(
        "sacct",
        r#"awk 'BEGIN { for (i = 0; i < 100001; i++) printf "\0377\037COMPLETED\037%d\0371\037gpu\037cpu=1\03700:00:01\037tao-job-a\n", 1700000000 + i }'"#,
    );
    let [cut, other] = site.run(&asked()).try_into().unwrap();
    assert_eq!(cut.runs.len(), 100_000);
    assert!(!cut.is_over() && !other.is_over());
}

#[test]
fn accounting_that_does_not_answer_is_no_answer() {
    let site = Site::new();
    site.program("sacct", "echo 'sacct: error: Problem talking to the database: Connection refused' >&2");
    assert_eq!(site.try_run(&asked()).unwrap_err().class(), FailureClass::Infra);
    assert_eq!(asked().rpcs(), 1);
}
