//! A site may hide a partition from its users, with their own jobs in it; and what -a shows beside those.

use remote::{Cancel, How, Locate, Sought, Submission};
use slurm::SlurmState;

use crate::{
    poll::{poll, row, rows, watched},
    site::{Site, id, key},
    submit_batch::{entry, one, submitted},
};

fn hidden(number: u32, state: &str) -> String {
    row(number, state).replace("|polar|", "|hidden|")
}

/// A job that runs where nobody sees it, and one that a federation runs elsewhere.
fn site() -> Site {
    let site = Site::new();
    site.write("queue", hidden(7, "RUNNING") + &row(8, "REVOKED"));
    site
}

#[test]
fn a_poll_sees_it() {
    let site = site();
    let answer = poll(&site, vec![watched(&site, 7), watched(&site, 8)]);
    let seen: Vec<_> = rows(&answer).iter().map(|row| (row.id, row.state.clone())).collect();
    assert_eq!(seen, [(id(7), SlurmState::Running)]);
    assert!(site.read("sacct.calls").ends_with("-j 8\n"), "what runs elsewhere is accounting's to tell");
}

#[test]
fn a_lost_submission_is_found_in_it() {
    let site = site();
    let sought = |number| Sought {
        key: key(&format!("job-{number}")),
        state_dir: site.path("state"),
        base_dir: site.path("base"),
        send: 1,
        cleared: 0,
    };
    let answer = site.run(&Locate { jobs: vec![sought(7), sought(8)], since_unix: 0 });
    assert_eq!(answer.located[0].squeue, [(id(7), SlurmState::Running)]);
    assert_eq!(answer.located[1].squeue, []);
}

#[test]
fn a_job_in_it_is_cancelled() {
    let site = site();
    let cancel = Cancel { jobs: vec![(id(7), key("job-7")), (id(8), key("job-8"))], ..Cancel::default() };
    site.run(&cancel);
    assert_eq!(site.read("scancel.calls"), "7\n");
}

#[test]
fn a_job_in_it_is_not_submitted_again() {
    let site = site();
    let again = |number: u32| {
        let key = format!("job-{number}");
        Submission { send: 2, cleared: 1, ..entry(&site, &key) }
    };
    assert_eq!(one(&site, again(7)), submitted(7, How::Adopted));
    one(&site, again(8));
    assert_eq!(site.calls("sbatch"), 1, "what runs elsewhere is no job of this cluster");
}
