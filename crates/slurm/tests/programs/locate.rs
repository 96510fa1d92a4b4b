use slurm::{Locate, LocateAnswer, SlurmState};

use crate::site::{Site, id, name};

fn locate(site: &Site, keys: &[&str]) -> LocateAnswer {
    let keys = keys.iter().map(|key| ((*key).to_owned(), name(key), site.path(&format!("state/{key}"))));
    site.run(&Locate { keys: keys.collect(), since_unix: 1_700_000_000 })
}

#[test]
fn every_place_is_looked_at() {
    let site = Site::new();
    site.write("queue", "7|RUNNING|None|n1|1|2|3|polar|a\n8|CANCELLED|None|n1|1|2|3|polar|a\n9|PENDING|None||1|N/A|N/A|polar|z\n");
    site.write("state/b/slurm_id", "77\n");
    site.link("78", "state/b/run");
    site.link("not-an-id", "state/c/run");
    site.write("state/c/slurm_id", "; rm -rf /\n");
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
    site.write("state/a/slurm_id", "77\n");
    let answer = locate(&site, &["a"]);
    assert!(!answer.controller_answered);
    assert_eq!(answer.located[0].sacct, None);
    assert_eq!(answer.located[0].id_file, Some(id(77)), "the files are looked at all the same");
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
