//! Concluding: logs, markers and private files, also on a file server that hangs.

use std::fs;

use remote::{Conclude, Concluded, Concluding, RemoteCommand};
use slurm::FailureClass;
use test_case::test_case;

use crate::site::{self, Site, id};

pub(crate) fn job(site: &Site, key: &str) -> Concluding {
    Concluding {
        is_bare: false,
        may_have_failed: false,
        role_logs: None,
        key: site::key(key),
        id: Some(id(7)),
        state_dir: site.path(&format!("state/{key}")),
        logs: vec![site.path(&format!("logs/{key}"))],
        results_dir: site.path(&format!("results/{key}")),
        status: Vec::new(),
        status_backlog: remote::STATUS_BACKLOG,
        results: Vec::new(),
        remove: vec![site.path(&format!("env/{key}")), site.path(&format!("env/{key}.other"))],
    }
}

pub(crate) fn conclude(site: &Site, jobs: Vec<Concluding>) -> Vec<Concluded> {
    site.run(&Conclude { jobs, tail_bytes: 10, status_bytes_total: 1000 })
}

#[test]
fn the_last_words_are_collected_and_the_private_files_removed() {
    let site = Site::new();
    site.write("logs/a/main.out", "0123456789abc\n");
    site.write("logs/a/main.err", "e\n");
    site.write("state/a/exit", "7 0 3 1700000000\n");
    site.link("7", "state/a/run");
    site.write("results/a/x/status.json", "{}\n");
    site.write("env/a", "SECRET=1");
    let [a] = conclude(&site, vec![job(&site, "a")]).try_into().unwrap();
    assert_eq!((a.out_tail.as_slice(), a.err_tail.as_slice()), (&b"456789abc\n"[..], &b"e\n"[..]));
    assert_eq!(a.markers.exit.unwrap().code, 3);
    assert_eq!(a.markers.run_claim, Some(id(7)));
    assert_eq!(
        (a.status.len(), a.status[0].key.as_str(), a.status[0].bytes.as_slice()),
        (1, "a", &b"{}\n"[..])
    );
    assert!(a.removed && a.readable && a.status[0].complete);
    assert!(!site.exists("env/a"));
}

#[test_case("begun.main.0"; "on the first node")]
#[test_case("begun.policy.3"; "on another")]
fn a_program_that_has_begun_is_told(mark: &str) {
    let site = Site::new();
    site.write(&format!("state/a/{mark}"), "");
    site.write("state/b/exit", "7 0 3 1700000000\n");
    let concluded = conclude(&site, ["a", "b"].map(|key| job(&site, key)).to_vec());
    assert_eq!(concluded.iter().map(|one| one.markers.begun).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn of_several_programs_the_one_that_ended_the_job_counts() {
    let site = Site::new();
    let ended = |key: &str, what: &str, begun: &str| {
        site.write(&format!("state/{key}/exit"), format!("7 0 1 1700000000\n{what}\npolicy 0 1 2\n"));
        site.write(&format!("state/{key}/begun.{begun}.0"), "");
        Concluding { role_logs: Some(site.path(&format!("logs/{key}"))), ..job(&site, key) }
    };
    let jobs = vec![
        ended("a", "step score has ended with code 1", "policy"),
        ended("b", "step score has ended with code 1", "score-all"),
        ended("c", "step score has ended with code 1", "score"),
        ended("d", "service policy has ended with code 114", "policy"),
        ended("e", "signal", "policy"),
    ];
    let concluded = conclude(&site, jobs);
    let begun: Vec<_> = concluded.iter().map(|one| one.markers.begun).collect();
    assert_eq!(begun, [false, false, true, true, true]);
}

#[test]
fn a_second_copy_does_not_take_the_files_of_the_first() {
    let site = Site::new();
    for (key, owner) in [("a", "8"), ("b", "7"), ("c", "rubbish")] {
        site.link(owner, &format!("state/{key}/run"));
        site.write(&format!("env/{key}"), "SECRET=1");
    }
    let jobs = ["a", "b", "c"].map(|key| job(&site, key)).to_vec();
    let concluded = conclude(&site, jobs.clone());
    assert_eq!(concluded[0].markers.run_claim, Some(id(8)));
    assert_eq!(["a", "b", "c"].map(|key| site.exists(&format!("env/{key}"))), [true, false, false]);
    assert_eq!(concluded.iter().map(|one| one.removed).collect::<Vec<_>>(), [false, true, true]);
    // The first has run and is through.
    conclude(&site, vec![Concluding { id: Some(id(8)), ..jobs[0].clone() }]);
    assert!(!site.exists("env/a"));
}

#[test]
fn an_answer_that_comes_late_does_not_take_the_files_of_a_later_attempt() {
    let site = Site::new();
    site.write("env/a", "SECRET=1");
    site.write("state/job/2/submit.1", "");
    let first = Concluding { state_dir: site.path("state/job/1"), ..job(&site, "a") };
    assert!(!conclude(&site, vec![first.clone()])[0].removed && site.exists("env/a"));
    let second = Concluding { state_dir: site.path("state/job/2"), ..first };
    assert!(conclude(&site, vec![second])[0].removed && !site.exists("env/a"));
}

#[test]
fn files_are_kept_while_nobody_can_say_whose_the_attempt_is() {
    let site = Site::new();
    site.link("7", "state/a/run");
    site.write("env/a", "SECRET=1");
    site.program("timeout", "case $* in *readlink*) exit 124 ;; esac\nexec /usr/bin/timeout \"$@\"");
    let concluded = conclude(&site, vec![job(&site, "a")]);
    assert!(!concluded[0].removed && site.exists("env/a"));
}

#[test]
fn where_there_was_no_room_nothing_is_said_of_any_job() {
    let site = Site::new();
    site.write("env/a", "SECRET=1");
    // As if the disk were full from here on.
    site.program("sort", "rm -rf -- \"$TMPDIR\"/slurm-call.*\nexec /usr/bin/sort \"$@\"");
    let command = Conclude { jobs: vec![job(&site, "a")], tail_bytes: 10, status_bytes_total: 1000 };
    let error = command.parse(&site.raw_with(&command, &[])).unwrap_err();
    assert_eq!(error.class(), FailureClass::Infra, "{error}");
}

#[test]
fn a_file_is_gone_only_if_that_was_said_of_it() {
    let site = Site::new();
    let mut jobs = ["a", "b"].map(|key| job(&site, key)).to_vec();
    for key in ["a", "b"] {
        site.write(&format!("env/{key}"), "SECRET=1");
    }
    jobs[0].remove.truncate(1);
    site.program("rm", "case $* in *env/a) exit 1 ;; esac\nexec /usr/bin/rm \"$@\"");
    let removed: Vec<_> = conclude(&site, jobs).iter().map(|one| one.removed).collect();
    assert_eq!((removed, site.exists("env/a"), site.exists("env/b")), (vec![false, true], true, false));
}

#[test]
fn whose_end_was_read_is_marked_as_over() {
    let site = Site::new();
    for key in ["a", "b"] {
        site.write(&format!("state/{key}/exit"), "7 0 3 1700000000\n");
    }
    let nameless = Concluding { id: None, ..job(&site, "b") };
    for _ in 0..2 {
        let [a, b] = conclude(&site, vec![job(&site, "a"), nameless.clone()]).try_into().unwrap();
        assert!(a.readable && b.readable && a.markers.exit.is_some(), "{a:?} {b:?}");
    }
    let at = |key: &str| std::fs::read_link(site.path(&format!("state/{key}/over")).as_str());
    assert_eq!(at("a").unwrap().to_str(), Some("7"));
    assert!(at("b").is_err());
}

#[test]
fn a_job_that_never_ran_has_left_nothing() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    site.write("env/other", "");
    let [a] = conclude(&site, vec![job(&site, "a")]).try_into().unwrap();
    assert_eq!((a.out_tail.len(), a.err_tail.len(), a.status.len(), a.removed), (0, 0, 0, true));
    assert!(a.readable, "its state directory says that the file system is there");
    assert_eq!(a.markers, remote::Markers::default());
    assert_eq!(conclude(&site, vec![]), []);
}

#[test]
fn of_tasks_that_never_had_nodes_only_those_with_a_directory_are_read() {
    let site = Site::new();
    site.write("state/7/tasks/1/main.err", "it began all the same");
    site.write("state/7/1.out", "");
    let task = |index: u32| {
        let state_dir = site.path(&format!("state/7/tasks/{index}"));
        Concluding { is_bare: true, state_dir, ..job(&site, &format!("7_{index}")) }
    };
    let lost = Concluding { is_bare: true, state_dir: site.path("gone/8/tasks/1"), ..job(&site, "8_1") };
    let found = conclude(&site, vec![task(1), task(2), task(3), lost]);
    let told: Vec<_> = found.iter().map(|one| (one.readable, one.err_tail.len())).collect();
    assert_eq!(told, [(true, 10), (true, 0), (true, 0), (false, 0)], "the last has no attempt");
    assert!(site.exists("state/7/tasks/1/over") && !site.exists("state/7/tasks/2"));
}

#[test]
fn logs_are_taken_from_the_first_place_that_has_them() {
    let site = Site::new();
    site.write("elsewhere/train.out", "named\n");
    site.write("state/a/main.err", "state\n");
    let logs = vec![site.path("nowhere/main.out"), site.path("elsewhere/train.out")];
    let [a] = conclude(&site, vec![Concluding { logs, ..job(&site, "a") }]).try_into().unwrap();
    assert_eq!((a.out_tail.as_slice(), a.err_tail.as_slice()), (&b"named\n"[..], &b"state\n"[..]));
}

#[test]
fn jobs_are_not_mixed_up_and_what_stays_is_said() {
    let site = Site::new();
    site.write("logs/a/main.out", "a\n");
    site.write("logs/b/main.out", "b\n");
    site.write("results/b/status.json", "{}\n");
    site.write("env/a/file", "a directory is not removed");
    let [a, b] = conclude(&site, vec![job(&site, "a"), job(&site, "b")]).try_into().unwrap();
    assert_eq!((a.out_tail.as_slice(), b.out_tail.as_slice()), (&b"a\n"[..], &b"b\n"[..]));
    assert_eq!((a.status.len(), b.status.len()), (0, 1));
    assert_eq!((a.removed, b.removed), (false, true));
}

#[test]
fn files_that_a_program_leaves_among_the_logs_of_roles_do_not_displace_these() {
    let site = Site::new();
    for index in 0..100 {
        site.write(&format!("logs/a/controller/dump{index}.out"), "not a log\n");
    }
    site.write("logs/a/policy/0.err", "RuntimeError\n");
    let [a] = conclude(&site, vec![Concluding { role_logs: Some(site.path("logs/a")), ..job(&site, "a") }])
        .try_into()
        .unwrap();
    assert_eq!(String::from_utf8(a.role_tails).unwrap(), "RuntimeError\n\n");
}

#[test]
fn the_ends_of_the_logs_of_roles_are_read_too() {
    let site = Site::new();
    site.write("state/a/run", "");
    site.write("logs/a/policy/0.err", "policy said");
    site.write("logs/a/rollout/1.out", format!("{}the end", "x".repeat(10_000)));
    site.write("logs/a/0.out", "nobody asked");
    site.write("logs/a/other/core.1.out", "nobody asked");
    let [a] = conclude(&site, vec![Concluding { role_logs: Some(site.path("logs/a")), ..job(&site, "a") }])
        .try_into()
        .unwrap();
    let tails = String::from_utf8(a.role_tails).unwrap();
    assert!(tails.contains("policy said\n") && tails.ends_with("the end\n"), "{tails}");
    assert!(!tails.contains("nobody") && tails.len() < 5000, "{}", tails.len());
}

#[test]
fn the_exit_record_names_the_component_that_ended_the_job() {
    let ended_with = |record: &str| {
        let site = Site::new();
        site.write("state/a/exit", format!("7 0 9 1700000000\n{record}\nmodel 9 1 2\n"));
        site.write("logs/a/model/0.err", "CUDA error\n");
        site.write("logs/a/judge/0.err", "");
        site.write("logs/a/judge/0.out", format!("{}the end\n", "x".repeat(10_000)));
        site.write("secret/0.err", "not a log of the job");
        let job = Concluding { role_logs: Some(site.path("logs/a")), ..job(&site, "a") };
        let [found] = conclude(&site, vec![job]).try_into().unwrap();
        assert_eq!(found.markers.exit.unwrap().code, 9);
        found.ended_with
    };
    let model = ended_with("service model has ended with code 9").unwrap();
    assert_eq!(
        (model.is_service, model.name.as_str(), &*model.what),
        (true, "model", "has ended with code 9")
    );
    assert_eq!((&model.err_tail[..], &model.out_tail[..]), (&b"CUDA error\n"[..], &b""[..]));
    let judge = ended_with("step judge has\u{7} failed").unwrap();
    assert_eq!((judge.is_service, &judge.err_tail[..], &*judge.what), (false, &b""[..], "has failed"));
    assert!(judge.out_tail.ends_with(b"the end\n") && judge.out_tail.len() == 4096);
    let gone = ended_with("service gone has ended").unwrap();
    assert_eq!([gone.out_tail, gone.err_tail], [b"", b""], "it has no logs");
    for other in ["done", "limit", "service", "service ", "step ../../secret has failed", "service model", ""]
    {
        assert_eq!(ended_with(other), None, "{other:?}");
    }
}

/// Three jobs of which everything can be read.
fn three(site: &Site) -> Vec<Concluding> {
    let with_files = |key: &str| {
        site.write(&format!("state/{key}/status_from"), "7 0 results/status.json\n");
        site.write(&format!("results/{key}/status.json"), "{}\n");
        site.write(&format!("logs/{key}/main.out"), key);
        site.write(&format!("env/{key}"), "SECRET=1");
        job(site, key)
    };
    ["a", "b", "c"].map(with_files).to_vec()
}

/// Concludes them, while whatever touches a path with this in it hangs.
fn conclude_while_hung(site: &Site, part: &str) -> Vec<Concluded> {
    let jobs = three(site);
    let environment = site.hang_all(part);
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let command = Conclude { jobs, tail_bytes: 10, status_bytes_total: 1000 };
    command.parse(&site.raw_with(&command, &environment)).unwrap()
}

fn readable(concluded: &[Concluded]) -> Vec<bool> {
    concluded.iter().map(|one| one.readable).collect()
}

#[test]
fn logs_that_hang_hold_up_no_other_job() {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, "/logs/b");
    assert_eq!(readable(&concluded), [true, false, true]);
    let tails: Vec<&[u8]> = concluded.iter().map(|one| one.out_tail.as_slice()).collect();
    assert_eq!(tails, [&b"a"[..], b"", b"c"]);
    assert!(concluded.iter().all(|one| one.removed));
}

#[test_case("/env/b", [true, false, true]; "one of them")]
#[test_case("/env/", [false, false, false]; "their directory")]
fn private_files_that_hang_are_kept_and_hold_up_nothing_else(part: &str, removed: [bool; 3]) {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, part);
    assert_eq!(readable(&concluded), [true, true, true]);
    assert_eq!(concluded.iter().map(|one| one.removed).collect::<Vec<_>>(), removed);
}

#[test]
fn a_note_of_how_far_a_status_file_goes_that_hangs_holds_up_no_other_job() {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, "/state/b/status_from");
    assert_eq!(readable(&concluded), [true, false, true]);
    assert_eq!(concluded.iter().map(|one| one.status.len()).collect::<Vec<_>>(), [1, 0, 1]);
}

#[test_case("/state/b"; "its state directory")]
#[test_case("/results/b"; "its results")]
#[test_case("/state/b/over"; "the mark that it is over")]
fn what_hangs_is_got_away_from(part: &str) {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, part);
    assert!(!concluded[1].readable, "{concluded:?}");
}

#[test]
fn a_file_system_that_goes_is_noticed_of_a_job_that_says_nothing_new_too() {
    let site = Site::new();
    let jobs = three(&site);
    site.remove("results/b/status.json");
    site.program(
        "find",
        "case $* in *status.json*) rm -rf -- \"$SITE/state/b\" ;; esac\nexec /usr/bin/find \"$@\"",
    );
    assert_eq!(readable(&conclude(&site, jobs)), [true, false, true]);
}

#[test]
fn an_end_is_marked_before_anything_that_tells_of_it_is_read() {
    for reader in ["find", "tail", "timeout"] {
        let site = Site::new();
        site.write("state/a/exit", "7 0 3 1700000000\n");
        site.write("state/a/main.out", "text\n");
        let is_marked = "[ -L \"$SITE/state/a/over\" ]";
        site.program(
            reader,
            &format!(
                "case $* in *' collect_logs '*) ;; *) {is_marked} || : >\"$SITE/early\" ;; esac\n\
                 exec /usr/bin/{reader} \"$@\""
            ),
        );
        conclude(&site, vec![job(&site, "a")]);
        assert!(!site.exists("early"), "{reader} was first");
    }
}

#[test]
fn whose_end_cannot_be_marked_has_not_been_looked_at() {
    let site = Site::new();
    let jobs = three(&site);
    // Nothing can be put in the place of a directory.
    fs::create_dir_all(site.file("state/a/over")).unwrap();
    assert_eq!(readable(&conclude(&site, jobs)), [false, true, true]);
}
