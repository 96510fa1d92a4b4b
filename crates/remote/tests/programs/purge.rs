use remote::{Purge, Purged, RemoteCommand, SubmitAnswer};
use slurm::FailureClass;
use uuid::Uuid;

use crate::{
    site::Site,
    submit_batch::{entry, one},
};

const OURS: Uuid = Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950e);
const OTHER: Uuid = Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950f);

/// Everything that a job leaves behind.
fn leave(site: &Site, id: Uuid) -> Vec<String> {
    let files = vec![
        format!("base/results/{id}/train/status.json"),
        format!("base/state/{id}/2/main.out"),
        format!("base/state/{id}/1/exit"),
        format!("base/specs/{id}.json"),
        format!("base/env/{id}.json"),
        format!("base/env/{id}.sh"),
        format!("base/env/{id}.model.sh"),
        format!("base/meta/{id}.json"),
        format!("base/sbatch/job_{id}.sbatch"),
        format!("base/slurm-logs/tao-job-{id}-7/main.out"),
        format!("base/slurm-logs/tao-job-{id}-r2-9/main.out"),
    ];
    for file in &files {
        site.write(file, if file.contains("state") { id.to_string() } else { "x".to_owned() });
    }
    // As the batch script does, and where it cannot.
    let log = site.file(&format!("base/slurm-logs/tao-job-{id}-7/main.out"));
    std::fs::remove_file(&log).unwrap();
    site.write(&format!("base/state/{id}/1/main.out"), "");
    std::fs::hard_link(site.file(&format!("base/state/{id}/1/main.out")), log).unwrap();
    site.remove(&format!("base/slurm-logs/tao-job-{id}-r2-9/main.out"));
    let opened = site.path(&format!("base/state/{id}/2/main.out"));
    site.link(opened.as_str(), &format!("base/slurm-logs/tao-job-{id}-r2-9/main.out"));
    mark(site, id, id);
    files
}

/// The results directory of `id` bears a mark that says that it is that of `owner`.
fn mark(site: &Site, id: Uuid, owner: Uuid) {
    site.write(&format!("base/results/{id}/.tao-slurm"), format!("{owner}\nMade by tao-slurm.\n"));
}

fn asked(site: &Site, base: &str, id: Uuid) -> Purged {
    site.run(&Purge { jobs: vec![(site.path(base), id)] })
}

fn purge(site: &Site, base: &str, id: Uuid) -> bool {
    asked(site, base, id).left.is_empty()
}

/// It was purged; these were said to be others'.
fn others(site: &Site) -> String {
    let Purged { left, others } = asked(site, "base", OURS);
    assert_eq!(left, []);
    others.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn everything_of_the_job_goes_and_nothing_of_others() {
    let site = Site::new();
    let (ours, others) = (leave(&site, OURS), leave(&site, OTHER));
    assert!(purge(&site, "base", OURS));
    assert!(ours.iter().all(|file| !site.exists(file)));
    assert!(others.iter().all(|file| site.exists(file)));
    assert!(purge(&site, "base", OURS), "once more is no error");
}

#[test]
fn a_results_directory_that_bears_no_mark_of_the_job_stays_and_is_named() {
    let site = Site::new();
    let files = leave(&site, OURS);
    site.remove(&format!("base/results/{OURS}/.tao-slurm"));
    assert_eq!(others(&site), format!("results/{OURS}\n"));
    assert!(site.exists(&files[0]) && files[1..].iter().all(|file| !site.exists(file)));
    // A copy of another job's results, under the caller's own UUID.
    mark(&site, OURS, OTHER);
    assert_eq!(others(&site), format!("results/{OURS}\n"));
    assert!(site.exists(&files[0]));
}

#[test]
fn only_the_beginning_of_a_mark_is_read() {
    let site = Site::new();
    leave(&site, OURS);
    site.write(&format!("base/results/{OURS}/.tao-slurm"), format!("{}{OURS}\n", "\0".repeat(500)));
    assert_eq!(others(&site), format!("results/{OURS}\n"));
}

#[test]
fn what_a_link_points_to_stays() {
    let site = Site::new();
    leave(&site, OURS);
    std::fs::rename(site.file(&format!("base/results/{OURS}")), site.file("elsewhere")).unwrap();
    site.link(site.file("elsewhere").to_str().unwrap(), &format!("base/results/{OURS}"));
    assert_eq!(others(&site), format!("results/{OURS}\n"), "who made the link has moved the results");
    assert!(site.exists("elsewhere/train/status.json"));
}

#[test]
fn logs_of_somebody_elses_job_of_that_name_stay_and_are_named() {
    let site = Site::new();
    leave(&site, OURS);
    site.write(&format!("base/slurm-logs/tao-job-{OURS}-3/main.out"), "x");
    assert_eq!(others(&site), format!("slurm-logs/tao-job-{OURS}-3\n"));
    assert!(site.exists(&format!("base/slurm-logs/tao-job-{OURS}-3/main.out")));
    assert!(!site.exists(&format!("base/slurm-logs/tao-job-{OURS}-7")));
}

#[test]
fn what_was_removed_in_part_is_removed_by_the_next_call() {
    let site = Site::new();
    leave(&site, OURS);
    // The mark goes, and then the time is over.
    site.program("rm", "case \"$*\" in *results*) /usr/bin/rm -f -- results/*/.tao-slurm results/.*/.tao-slurm; exit 124 ;; esac\nexec /usr/bin/rm \"$@\"");
    assert!(!purge(&site, "base", OURS));
    site.program("rm", "exec /usr/bin/rm \"$@\"");
    assert_eq!(others(&site), "");
    for dir in ["results", "slurm-logs", "state"] {
        assert_eq!(std::fs::read_dir(site.file("base").join(dir)).unwrap().count(), 0, "{dir}");
    }
}

#[test]
fn a_base_directory_that_is_not_there_may_come_back() {
    let site = Site::new();
    assert!(!purge(&site, "gone", OURS));
}

#[test]
fn a_question_that_was_cut_removes_nothing() {
    let site = Site::new();
    let files = leave(&site, OURS);
    let command = Purge { jobs: vec![(site.path("base"), OURS)] };
    for length in 0..command.render().stdin.len() {
        let error = command.parse(&site.raw_cut(&command, length)).unwrap_err();
        assert_eq!(error.class(), FailureClass::NotDone, "{length}");
    }
    assert!(files.iter().all(|file| site.exists(file)));
}

/// The names in the state directory of the job's first attempt.
fn state(site: &Site) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(site.file(&format!("base/state/{OURS}/1"))) else { return vec![] };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn of_sends_that_have_all_begun_nothing_is_left() {
    let site = Site::new();
    leave(&site, OURS);
    for send in 1..=11 {
        site.write(&format!("base/state/{OURS}/1/submit.{send}"), "");
    }
    site.write(&format!("base/state/{OURS}/1/bin/scancel"), "x");
    assert!(purge(&site, "base", OURS));
    assert!(!site.exists(&format!("base/state/{OURS}")));
}

#[test]
fn a_submission_that_was_held_up_until_its_job_is_gone_still_comes_too_late() {
    for (shut, begun) in [(Some(1), None), (None, Some(2)), (Some(2), Some(1)), (Some(1), Some(2))] {
        let site = Site::new();
        leave(&site, OURS);
        site.write(&format!("base/state/{OURS}/1/bin/scancel"), "x");
        if let Some(send) = begun {
            site.write(&format!("base/state/{OURS}/1/submit.{send}"), "");
        }
        if let Some(send) = shut {
            site.link("no-owner", &format!("base/state/{OURS}/1/submit.{send}"));
        }
        for _ in 0..2 {
            assert!(purge(&site, "base", OURS));
            let left = state(&site);
            assert!(left.iter().all(|name| name.starts_with("submit.")), "{left:?}");
            assert!(!site.exists(&format!("base/state/{OURS}/2")));
        }
        for send in (1..=2).filter(|send| begun != Some(*send)) {
            let mut late = entry(&site, "a");
            late.state_dir = site.path(&format!("base/state/{OURS}/1"));
            late.send = send;
            let is_later = shut.into_iter().chain(begun).all(|other| other < send);
            if !is_later {
                assert_eq!(one(&site, late), SubmitAnswer::Uncertain, "{shut:?} {begun:?} {send}");
                assert!(!site.exists("env/a"), "nothing of it is staged");
            }
        }
        assert_eq!(site.calls("sbatch"), 0);
    }
}

#[test]
fn what_a_link_among_the_attempts_points_to_stays() {
    let site = Site::new();
    leave(&site, OURS);
    site.write("elsewhere/submit.2", "");
    site.link(site.file("elsewhere").to_str().unwrap(), &format!("base/state/{OURS}/9"));
    assert!(purge(&site, "base", OURS));
    assert!(site.exists("elsewhere/submit.2") && !site.exists(&format!("base/state/{OURS}")));
}
