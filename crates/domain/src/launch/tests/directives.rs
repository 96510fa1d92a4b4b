//! What a job, its cluster and its attempt ask of Slurm.

use test_case::test_case;

use super::*;

#[test_case(true => true ; "as wanted")]
#[test_case(false => false ; "not at all")]
fn a_job_is_requeued(use_requeue: bool) -> bool {
    let mut job = command_job();
    job.spec.use_requeue = use_requeue;
    let text = script(&job, &cluster());
    assert_eq!(text.contains("#SBATCH --no-requeue\n"), !use_requeue);
    assert_eq!(text.contains("\nreadonly _tao_max_requeues=10\n"), use_requeue);
    text.contains("#SBATCH --requeue\n")
}

#[test_case(None, 0 => ("04:00:00".to_owned(), 13_680); "without a limit on the total time")]
#[test_case(Some(36_000), 0 => ("04:00:00".to_owned(), 13_680); "with more than enough left")]
#[test_case(Some(36_000), 32_400 => ("01:12:00".to_owned(), 3600); "with an hour left, and the margin")]
#[test_case(Some(36_000), 35_990 => ("00:13:00".to_owned(), 10); "with seconds left")]
#[test_case(Some(36_000), 40_000 => ("00:12:00".to_owned(), 1); "with nothing left it is not the whole limit again")]
fn the_last_attempt_has_the_time_that_is_left(total: Option<u32>, ran_before: u32) -> (String, u32) {
    let mut job = command_job();
    (job.spec.restart.max_total_seconds, job.run.ran_before) = (total, ran_before);
    let text = script(&job, &cluster());
    let value = |prefix: &str| {
        text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    (value("#SBATCH --time="), value("readonly _tao_limit=").parse().unwrap())
}

#[test]
fn what_a_cluster_wants_is_in_every_script() {
    let mut cluster = cluster();
    cluster.batch = BatchSettings {
        mail_user: Some("ops@example.org".parse().unwrap()),
        warning_seconds: 60,
        sbatch_export: SbatchExport::Nil,
        ..BatchSettings::default()
    };
    cluster.retries.max_requeues = 3;
    let text = script(&command_job(), &cluster);
    for part in [
        "--mail-user=ops@example.org\n",
        "--signal=B:USR1@60\n",
        "--export=NIL\n",
        "\nreadonly _tao_max_requeues=3\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_trace_of_a_job_is_slurms_comment() {
    let mut job = command_job();
    assert!(!script(&job, &cluster()).contains("--comment"));
    job.spec.trace = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap());
    let line = "\n#SBATCH --comment=traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n";
    assert!(script(&job, &cluster()).contains(line));
}

/// The directives of a job, without their beginning.
fn directives_of(job: &Job, cluster: &Cluster) -> Vec<String> {
    let text = script(job, cluster);
    text.lines().filter_map(|line| line.strip_prefix("#SBATCH --")).map(str::to_owned).collect()
}

#[test]
fn a_job_of_an_earlier_release_is_charged_to_the_clusters_account() {
    let cluster = Cluster { account: Some("team".parse().unwrap()), ..cluster() };
    let mut job = command_job();
    assert!(directives_of(&job, &cluster).contains(&"account=team".to_owned()));
    job.spec.options.account = Some("other".parse().unwrap());
    assert!(directives_of(&job, &cluster).contains(&"account=other".to_owned()));
}

#[test]
fn the_cluster_says_how_gpus_are_asked_for() {
    let mut cluster = cluster();
    assert!(directives_of(&command_job(), &cluster).contains(&"gres=gpu:4".to_owned()));
    cluster.submit.gpu_request = slurm::GpuRequest::GpusPerNode;
    let lines = directives_of(&command_job(), &cluster);
    assert!(lines.contains(&"gpus-per-node=4".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("gres")), "{lines:?}");
}

#[test]
fn a_later_attempt_begins_at_the_same_time_and_has_the_same_deadline() {
    let mut job = command_job();
    job.spec.begin = Some("now+1hour".parse().unwrap());
    job.spec.deadline = Some("now+2hours".parse().unwrap());
    let after = |minutes: i64| {
        let now = DateTime::UNIX_EPOCH + chrono::TimeDelta::minutes(minutes);
        let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), now).unwrap();
        let submission = plan_submission(&job, &attempt, &cluster(), &Secrets::default()).unwrap();
        let text = String::from_utf8(file(&submission, ".sbatch").bytes.clone()).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("#SBATCH --{name}=")));
            line.map(str::to_owned)
        };
        (of("begin"), of("deadline"))
    };
    let seconds = |seconds: u32| Some(format!("now+{seconds}seconds"));
    assert_eq!(after(0), (seconds(3600), seconds(7200)));
    assert_eq!(after(30), (seconds(1800), seconds(5400)));
    assert_eq!(after(90), (None, seconds(1800)), "it may begin at once");
    assert_eq!(after(180), (None, seconds(1)), "Slurm refuses it, and says why");
}
