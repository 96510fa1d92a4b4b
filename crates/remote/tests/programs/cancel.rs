use remote::{AttemptKey, Cancel, Canceled};
use slurm::{Failure, FailureClass, SlurmJobId};
use test_case::test_case;

use crate::site::{Site, id, key};

fn job(number: u32) -> (SlurmJobId, AttemptKey) {
    (id(number), key(&format!("job-{number}")))
}

fn queue(site: &Site, jobs: impl IntoIterator<Item = (u32, &'static str)>) {
    let rows = jobs.into_iter().map(|(id, name)| format!("{id}|RUNNING|None|n1|1|2|3|polar|{name}\n"));
    site.write("queue", rows.collect::<String>());
}

fn refused(site: &Site, cancel: &Cancel) -> Failure {
    site.run(cancel).refused.unwrap()
}

#[test]
fn ids_go_five_hundred_at_a_time_after_one_look_at_the_queue() {
    let site = Site::new();
    let rows = (1..=1001).map(|id| format!("{id}|RUNNING|None|n1|1|2|3|polar|job-{id}\n"));
    site.write("queue", rows.collect::<String>());
    let cancel = Cancel { jobs: (1..=1001).map(job).collect(), ..Cancel::default() };
    assert_eq!(site.run(&cancel), Canceled { refused: None });
    let calls = site.read("scancel.calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].split(' ').count(), 500);
    assert_eq!(calls[2], "1001");
    assert_eq!(site.calls("squeue"), 1);
}

#[test]
fn an_id_that_now_belongs_to_another_job_is_left_alone() {
    let site = Site::new();
    // The fake turns \n into a newline, as a job's name may hold one.
    queue(
        &site,
        [(7, "somebody-else"), (8, "job-8"), (9, "job-9|x"), (11, "x\\n10|job-10"), (12, "job-12\\n")],
    );
    let cancel = Cancel { jobs: [7, 8, 9, 10, 12].map(job).to_vec(), ..Cancel::default() };
    assert_eq!(site.run(&cancel), Canceled { refused: None });
    assert_eq!(site.read("scancel.calls"), "8\n");
}

#[test]
fn a_name_stands_for_all_jobs_that_have_it() {
    let site = Site::new();
    queue(&site, [(7, "a"), (8, "b"), (9, "a"), (10, "a|b"), (11, "c")]);
    let cancel = Cancel {
        jobs: vec![(id(7), key("a")), (id(11), key("c"))],
        names: vec![key("a")],
        ..Cancel::default()
    };
    assert_eq!(site.run(&cancel), Canceled { refused: None });
    assert_eq!(
        site.read("scancel.calls"),
        "9 7 11\n",
        "each once, all in one call, and a name before the jobs of which only the id is known"
    );
}

#[test]
fn what_is_not_in_the_queue_is_cancelled_already() {
    let site = Site::new();
    let cancel = Cancel { jobs: vec![job(7)], names: vec![key("a")], ..Cancel::default() };
    assert_eq!(site.run(&cancel), Canceled { refused: None });
    assert_eq!(site.calls("scancel"), 0);
}

#[test]
fn nothing_to_cancel_is_a_success() {
    let site = Site::new();
    site.write("squeue.rc", "1");
    assert_eq!(site.run(&Cancel::default()), Canceled { refused: None });
}

#[test_case("1", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", FailureClass::NotDone; "no connection")]
#[test_case("0", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", FailureClass::NotDone; "an error and rc 0")]
#[test_case("1", "slurm_load_jobs error: Socket timed out on send/recv operation", FailureClass::NotDone; "no doubt: nothing was done")]
#[test_case("1", "slurm_load_jobs error: Protocol authentication error", FailureClass::Infra; "a broken site")]
#[test_case("124", "", FailureClass::NotDone; "no answer in time")]
fn while_the_queue_does_not_answer_nothing_is_cancelled(code: &str, stderr: &str, class: FailureClass) {
    let site = Site::new();
    queue(&site, [(7, "job-7"), (8, "a")]);
    site.write("squeue.rc", code);
    site.write("squeue.err", stderr);
    let failure = refused(&site, &Cancel { jobs: vec![job(7)], names: vec![key("a")], ..Cancel::default() });
    assert_eq!(failure.class, class);
    assert!(!failure.excerpt.is_empty());
    assert_eq!(site.calls("scancel"), 0);
}

#[test]
fn what_is_over_counts_as_canceled() {
    let site = Site::new();
    queue(&site, [(7, "job-7")]);
    site.write("scancel.rc", "1");
    site.write("scancel.err", "scancel: error: Kill job error on job id 7: Invalid job id specified\n");
    assert_eq!(site.run(&Cancel { jobs: vec![job(7)], ..Cancel::default() }), Canceled { refused: None });
    assert_eq!(site.calls("scancel"), 1);
}

#[test]
fn a_refusal_has_a_class() {
    let site = Site::new();
    queue(&site, [(7, "job-7"), (21, "job-21"), (1, "a")]);
    site.write("scancel.rc", "210");
    site.write(
        "scancel.err",
        "scancel: error: Kill job error on job id 7: Invalid job id specified\n\
         scancel: error: Kill job error on job id 21: Access/permission denied\n",
    );
    let failure = refused(&site, &Cancel { jobs: vec![job(7), job(21)], ..Cancel::default() });
    assert_eq!(failure.class, FailureClass::Permanent);
    site.write("scancel.rc", "8");
    site.write(
        "scancel.err",
        "scancel: error: Kill job error on job id 1: Unable to contact slurm controller (connect failure)\n",
    );
    let failure = refused(&site, &Cancel { tasks: vec![], jobs: vec![], names: vec![key("a")] });
    assert_eq!(failure.class, FailureClass::NotDone);
}

#[test]
fn a_question_that_was_cut_cancels_nothing() {
    use remote::RemoteCommand;
    let site = Site::new();
    queue(&site, [(7, "job-7"), (8, "a")]);
    let cancel = Cancel { jobs: vec![job(7)], names: vec![key("a")], ..Cancel::default() };
    for length in 0..cancel.render().stdin.len() {
        let raw = site.raw_cut(&cancel, length);
        assert_eq!(cancel.parse(&raw).unwrap_err().class(), FailureClass::NotDone, "{length}");
    }
    assert_eq!(site.calls("scancel"), 0);
}

#[test]
fn an_array_is_canceled_whole_or_only_some_of_its_tasks() {
    let site = Site::new();
    let row = |place: &str, name: &str| format!("{place}|RUNNING|None|n1|N/A|N/A|N/A|polar|{name}\n");
    site.write(
        "queue",
        row("9~7~3", "a") + &row("7~7~4-9", "a") + &row("12~11~0", "b") + &row("11~11~1", "b"),
    );
    let tasks = vec![(id(7), key("a"), "3,7-9".parse().unwrap())];
    site.run(&Cancel { jobs: vec![(id(11), key("b"))], tasks, ..Cancel::default() });
    assert_eq!(site.read("scancel.calls").trim(), "7_[3,7-9] 11");
}
