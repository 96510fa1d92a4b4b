use std::fs;

use remote::{Locate, LocateAnswer, Sought, SubmitAnswer};
use slurm::SlurmState;

use crate::{
    site::{Site, id, key},
    submit_batch::{entry, one},
};

pub(crate) fn sought(site: &Site, key: &str) -> Sought {
    Sought {
        key: super::site::key(key),
        state_dir: site.path(&format!("base/state/{key}")),
        base_dir: site.path("base"),
        send: 1,
        cleared: 0,
    }
}

fn locate(site: &Site, keys: &[&str]) -> LocateAnswer {
    let jobs = keys.iter().map(|key| sought(site, key)).collect();
    site.run(&Locate { jobs, since_unix: 1_700_000_000 })
}

#[test]
fn every_place_is_looked_at() {
    let site = Site::new();
    site.write("queue", "7|RUNNING|None|n1|1|2|3|polar|a\n8|CANCELLED|None|n1|1|2|3|polar|a\n9|PENDING|None||1|N/A|N/A|polar|z\n");
    site.write("base/state/b/slurm_id", "77\n");
    site.link("78", "base/state/b/run");
    site.link("not-an-id", "base/state/c/run");
    site.write("base/state/c/slurm_id", "; rm -rf /\n");
    site.write("sacct.rows", "6|c\n6|c\n5|allocation\nrubbish\n");
    let answer = locate(&site, &["a", "b", "c", "d"]);
    assert!(answer.controller_answered);
    assert!(answer.remote_time > 1_700_000_000);
    let [a, b, c, d] = answer.located.as_slice() else { panic!("four") };
    assert_eq!(a.squeue, [(id(7), SlurmState::Running), (id(8), SlurmState::Cancelled)]);
    assert_eq!((b.id_file, b.run_claim), (Some(id(77)), Some(id(78))));
    assert_eq!((c.id_file, c.run_claim), (None, None));
    assert_eq!(c.sacct, Some(vec![id(6)]));
    assert_eq!((d.squeue.len(), d.id_file, d.run_claim, d.sacct.as_deref()), (0, None, None, Some(&[][..])));
    assert!(site.read("sacct.calls").contains("-S 2023-11-14T22:13:20 "));
}

#[test]
fn silence_is_not_absence() {
    let site = Site::new();
    site.write("squeue.err", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
    site.write("sacct.rc", "1");
    site.write("base/state/a/slurm_id", "77\n");
    let answer = locate(&site, &["a"]);
    assert!(!answer.controller_answered);
    assert_eq!(answer.located[0].sacct, None);
    assert_eq!(answer.located[0].id_file, Some(id(77)), "the files are looked at all the same");
}

#[test]
fn files_that_cannot_be_looked_for_prove_no_absence() {
    let readable = |site: &Site| locate(site, &["a"]).located[0].readable;
    assert!(readable(&Site::new()), "nobody has made the base directory yet, and what is above it is there");
    let site = Site::new();
    fs::create_dir(site.file("base")).unwrap();
    assert!(!readable(&site), "as the place of a file system that is not mounted");
    assert!(!site.exists("base/state"), "what was made there would hide that");
    site.write("base/state/a/submit.1", "");
    assert!(readable(&site));
    for complaint in ["Stale file handle", "Permission denied", "Input/output error"] {
        site.program("find", &format!("echo \"find: '$SITE/base/state/a': {complaint}\" >&2; exit 1"));
        assert!(!readable(&site), "{complaint}");
    }
    site.program("find", "rm -rf -- \"$SITE/base\"/*; exec /usr/bin/find \"$@\"");
    assert!(!readable(&site), "it went meanwhile");
}

#[test]
fn a_file_system_that_is_away_with_what_is_above_it_proves_no_absence() {
    let site = Site::new();
    let away = Sought {
        key: key("a"),
        state_dir: site.path("lustre/users/tao/state/a/1"),
        base_dir: site.path("lustre/users/tao"),
        send: 1,
        cleared: 0,
    };
    let there =
        Sought { state_dir: site.path("base/state/b/1"), base_dir: site.path("base"), ..away.clone() };
    site.write("base/env/b.sh", "");
    let answer = site.run(&Locate { jobs: vec![away, there], since_unix: 0 });
    assert_eq!((answer.located[0].readable, answer.located[1].readable), (false, true));
}

#[test]
fn a_send_that_has_not_begun_never_does() {
    let site = Site::new();
    let (mut send, sought) = (entry(&site, "a"), sought(&site, "a"));
    (send.state_dir, send.base_dir) = (sought.state_dir.clone(), sought.base_dir.clone());
    let unbegun = |send, cleared| {
        let jobs = vec![Sought { send, cleared, ..sought.clone() }];
        site.run(&Locate { jobs, since_unix: 0 }).located[0].unbegun
    };
    assert!(unbegun(1, 0));
    assert_eq!(one(&site, send.clone()), SubmitAnswer::Uncertain, "it was held up");
    assert_eq!(site.calls("sbatch"), 0);
    assert!(unbegun(1, 0), "whoever asks");
    site.write("sbatch.rc", "1");
    (send.send, send.cleared) = (2, 1);
    assert!(matches!(one(&site, send), SubmitAnswer::Refused { .. }));
    assert!(!unbegun(2, 1), "it has called sbatch");
    assert!(unbegun(3, 2), "which had no effect, as its sender knows");
    assert!(!unbegun(4, 1), "an earlier one has begun");
}

#[test]
fn a_send_that_cannot_be_shut_out_proves_nothing() {
    let site = Site::new();
    site.write("base/env/a.sh", "");
    site.program("ln", "exit 1");
    let answer = locate(&site, &["a"]);
    assert_eq!((answer.located[0].readable, answer.located[0].unbegun), (false, false));
}

#[test]
fn a_claim_that_hangs_holds_up_no_other() {
    let site = Site::new();
    site.patience_of_reads(3);
    site.write("base/env/a.sh", "");
    site.program("ln", "case $* in *state/a/*) sleep 100 ;; *) exec /bin/ln \"$@\" ;; esac");
    let answer = locate(&site, &["a", "b"]);
    let unbegun: Vec<_> = answer.located.iter().map(|found| (found.readable, found.unbegun)).collect();
    assert_eq!(unbegun, [(false, false), (true, true)]);
}

#[test]
fn an_id_whose_read_hangs_is_none_that_is_missing() {
    let site = Site::new();
    site.patience_of_reads(3);
    for key in ["a", "b"] {
        site.write(&format!("base/state/{key}/slurm_id"), "7\n");
    }
    let _hung = site.hang("base/state/a/slurm_id");
    let answer = locate(&site, &["a", "b"]);
    let [a, b] = answer.located.as_slice() else { panic!("two") };
    assert_eq!((a.id_file, a.readable), (None, false));
    assert_eq!((b.id_file, b.readable), (Some(id(7)), true));
}

#[test]
fn an_id_without_its_newline_may_be_a_part_of_one() {
    let site = Site::new();
    site.write("base/state/a/slurm_id", "77");
    site.write("base/state/b/slurm_id", "77\n");
    let answer = locate(&site, &["a", "b"]);
    let ids: Vec<_> = answer.located.iter().map(|found| (found.id_file, found.readable)).collect();
    assert_eq!(ids, [(None, true), (Some(id(77)), true)]);
}

#[test]
fn what_of_a_federation_runs_elsewhere_is_no_job_here() {
    let site = Site::new();
    site.write("queue", "7|REVOKED|None|n1|1|2|3|polar|a\n8|RUNNING|None|n1|1|2|3|polar|a\n");
    assert_eq!(locate(&site, &["a"]).located[0].squeue, [(id(8), SlurmState::Running)]);
}

#[test]
fn a_site_without_accounting_has_answered_that_nothing_is_in_it() {
    let site = Site::new();
    site.write("sacct.rc", "1");
    site.write("sacct.err", "Slurm accounting storage is disabled\n");
    assert_eq!(locate(&site, &["a"]).located[0].sacct, Some(vec![]));
}

#[test]
fn many_names_are_asked_for_two_hundred_at_a_time() {
    let site = Site::new();
    let keys: Vec<String> = (0..401).map(|n| format!("job-{n}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(locate(&site, &keys).located.len(), 401);
    assert_eq!((site.calls("squeue"), site.calls("sacct")), (3, 3));
    assert_eq!(locate(&site, &[]).located, []);
}
