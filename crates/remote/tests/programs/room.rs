//! A temporary directory without room: what could not be kept is not said to be missing.

use std::fmt::Write;

use remote::{
    Allocations, Cancel, Canceled, Conclude, Concluded, Locate, Poll, RemoteCommand, Requeued, Watched,
};
use slurm::FailureClass;

use crate::{
    conclude, locate, poll,
    site::{Site, id, key},
};

/// Enough for everything, in KiB.
const ROOMY: u32 = 2048;

fn keys() -> Vec<String> {
    (10..34).map(|number| format!("job-of-a-name-that-is-longer-than-others-{number}")).collect()
}

/// What a job has left whose state directory and results directory are these.
fn leave(site: &Site, state: &str, results: &str) {
    let words = "of which there are some more, as of a mark that somebody has made longer";
    for (mark, text) in [("exit", "7 0 3 1700000000"), ("started", "7 0 1700000000 node01")] {
        site.write(&format!("{state}/{mark}"), format!("{text}\n{words}\n"));
    }
    for mark in ["requeued", "warned", "limited", "self_canceled"] {
        site.write(&format!("{state}/{mark}"), format!("7 0 1700000000 {words}\n"));
    }
    site.link("7", &format!("{state}/run"));
    site.write(&format!("{results}/status.json"), "{}\n");
    site.write(&format!("{state}/status_from"), "run 1\n");
}

fn concluding(site: &Site) -> Conclude {
    let job = |key: &String| {
        leave(site, &format!("state/{key}"), &format!("results/{key}"));
        conclude::job(site, key)
    };
    site.write("env/other", "");
    Conclude { jobs: keys().iter().map(job).collect(), tail_bytes: 10, status_bytes_total: 1000 }
}

fn polling(site: &Site) -> Poll {
    let mut rows = String::new();
    let mut records = String::new();
    let mut jobs = Vec::new();
    for number in 10..58 {
        leave(site, &format!("state/{number}"), &format!("results/{number}"));
        let state = ["RUNNING", "COMPLETED", "GONE", "FAILED"][number as usize % 4];
        if state != "GONE" {
            rows += &poll::row(number, state);
        }
        records += &poll::record(number, "COMPLETED", "0:0", &format!("job-{number}"));
        let signs_of_life = Some(site.path(&format!("logs/{number}")));
        jobs.push(Watched { signs_of_life, ..poll::watched(site, number) });
    }
    site.write("queue", rows);
    site.write("sacct.rows", records);
    Poll { jobs, arrays: Vec::new(), status_bytes_per_file: 1000, status_bytes_total: 2500, others: None }
}

fn locating(site: &Site) -> Locate {
    let mut rows = String::new();
    let mut records = String::new();
    for (number, key) in (10..).zip(keys()) {
        writeln!(rows, "{number}|RUNNING|None|n1|1|2|3|polar|{key}").unwrap();
        writeln!(records, "{number}|{key}").unwrap();
        site.write(&format!("base/state/{key}/slurm_id"), format!("{number}\n"));
        site.link("7", &format!("base/state/{key}/run"));
    }
    site.write("queue", rows);
    site.write("sacct.rows", records);
    let jobs = keys().iter().map(|key| locate::sought(site, key)).collect();
    Locate { jobs, since_unix: 1_700_000_000 }
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum Answered {
    Whole,
    Refused,
    Lost,
}

/// What the answer in so much room is.
fn answered<C: RemoteCommand>(
    site: &Site,
    command: &C,
    room: u32,
    whole: impl Fn(C::Output) -> bool,
) -> Answered {
    match command.parse(&site.raw_in_room(command, room)) {
        Ok(answer) => {
            if whole(answer) {
                Answered::Whole
            } else {
                Answered::Lost
            }
        }
        Err(error) => {
            assert_eq!(error.class(), FailureClass::Infra, "{error}");
            Answered::Refused
        }
    }
}

/// None of these sizes leads to an answer that lacks something. The first is too small, and the last is enough.
fn in_any_room<C: RemoteCommand>(
    site: &Site,
    command: &C,
    sizes: impl Iterator<Item = u32>,
    whole: impl Fn(C::Output) -> bool,
) {
    let found: Vec<_> = sizes.map(|room| (room, answered(site, command, room, &whole))).collect();
    assert!(found.iter().all(|(_, answer)| *answer != Answered::Lost), "{found:?}");
    let ends = (found[0].1, found[found.len() - 1].1);
    assert_eq!(
        ends,
        (Answered::Refused, Answered::Whole),
        "the sizes are no longer those between: {found:?}"
    );
}

/// There is no room while a process runs that is started like this, and some again when it has ended.
pub(crate) fn while_full<C: RemoteCommand>(
    site: &Site,
    command: &C,
    like: &[&str],
    whole: impl Fn(C::Output) -> bool,
) {
    let mut found = Vec::new();
    for part in like {
        site.program(
            "timeout",
            &format!(
                "case $* in *'{part}'*) ;; *) exec /usr/bin/timeout \"$@\" ;; esac
                 cat /dev/zero >\"$TMPDIR/filling\" 2>/dev/null
                 echo >>\"$SITE/filled\"
                 /usr/bin/timeout \"$@\"
                 code=$?
                 rm -f -- \"$TMPDIR/filling\"
                 exit \"$code\""
            ),
        );
        site.write("filled", "");
        found.push((part, answered(site, command, ROOMY, &whole)));
        assert_ne!(site.read("filled"), "", "{part}");
    }
    assert!(found.iter().all(|(_, answer)| *answer != Answered::Lost), "{found:?}");
}

/// As the real ones, squeue and sacct do not look whether what they print is kept.
pub(crate) fn silently(site: &Site) {
    for name in ["squeue", "sacct"] {
        let text = std::fs::read_to_string(site.file("bin").join(name)).unwrap();
        site.program(name, &format!("{{\n{text}\n}} 2>/dev/null\nexit 0"));
    }
}

#[test]
fn no_mark_is_lost_for_want_of_room() {
    let site = Site::new();
    let command = concluding(&site);
    let roomy = site.run(&command);
    assert!(roomy.iter().all(|one| one.readable && one.markers.exit.is_some() && one.status.len() == 1));
    let whole = |answer: Vec<Concluded>, roomy: &[Concluded]| {
        answer.iter().zip(roomy).all(|(one, roomy)| !one.readable || one == roomy)
    };
    // Marks are most of what is to be kept where there is nothing else.
    let mut marks = command.clone();
    for job in &mut marks.jobs {
        (job.results_dir, job.remove) = (site.path("results/none"), vec![]);
    }
    let roomy_marks = site.run(&marks);
    in_any_room(&site, &marks, (20..68).step_by(4), |answer| whole(answer, &roomy_marks));
    let like = [
        "-name run",
        "walk exit",
        "-name status.json",
        "-name status_from",
        "/parts",
        "-d \"$dir\"",
        "taken=1",
    ];
    while_full(&site, &command, &like, |answer| whole(answer, &roomy));
}

#[test]
fn no_row_is_lost_for_want_of_room() {
    let site = Site::new();
    let command = polling(&site);
    let roomy = site.run(&command);
    assert_eq!((roomy.markers.len(), roomy.status.len(), roomy.signs_of_life.len()), (36, 48, 12));
    let whole = |mut answer: remote::PollAnswer| {
        answer.remote_time = roomy.remote_time;
        answer.status.sort_by_key(|chunk| chunk.path.clone());
        let mut roomy = roomy.clone();
        roomy.status.sort_by_key(|chunk| chunk.path.clone());
        answer == roomy
    };
    silently(&site);
    in_any_room(&site, &command, (80..312).step_by(16), whole);
    let like =
        [" squeue ", " sacct ", "-name run", "walk exit", "-name status.json", "-name status_from", "%H"];
    while_full(&site, &command, &like, whole);
}

#[test]
fn nothing_is_absent_for_want_of_room() {
    let site = Site::new();
    let command = locating(&site);
    let roomy = site.run(&command);
    assert!(
        roomy.located.iter().all(|one| one.readable && one.id_file.is_some() && one.run_claim == Some(id(7)))
    );
    assert!(roomy.located.iter().all(|one| one.squeue.len() == 1 && one.sacct.as_ref().unwrap().len() == 1));
    let whole = |mut answer: remote::LocateAnswer| {
        answer.remote_time = roomy.remote_time;
        answer.controller_answered
            && answer.located.iter().zip(&roomy.located).all(|(one, roomy)| {
                (!one.readable || (one.id_file, one.run_claim) == (roomy.id_file, roomy.run_claim))
                    && (one.unbegun, &one.squeue, &one.sacct) == (roomy.unbegun, &roomy.squeue, &roomy.sacct)
            })
    };
    silently(&site);
    in_any_room(&site, &command, (32..68).step_by(4), whole);
    let like = [" squeue ", " sacct ", "-name run", "walk slurm_id", "submit.$send", "-print -quit"];
    while_full(&site, &command, &like, whole);
}

#[test]
fn no_job_is_left_uncanceled_for_want_of_room() {
    let site = Site::new();
    let jobs: Vec<_> = (100..700).map(|number| (id(number), key(&format!("job-{number}")))).collect();
    site.write("queue", (100..700).map(|number| poll::row(number, "RUNNING")).collect::<String>());
    let command = Cancel { jobs, ..Cancel::default() };
    let all = (100..700).map(|number| number.to_string()).collect::<Vec<_>>();
    let whole = |answer: Canceled| {
        let calls = site.read("scancel.calls");
        site.write("scancel.calls", "");
        answer.refused.is_some() || calls.split_whitespace().collect::<Vec<_>>() == all
    };
    silently(&site);
    in_any_room(&site, &command, (8..96).step_by(4), whole);
    while_full(&site, &command, &[" squeue "], whole);
}

#[test]
fn no_run_is_lost_for_want_of_room() {
    let site = Site::new();
    let mut rows = String::new();
    for number in 100..400 {
        writeln!(rows, "{number}\u{1f}NODE_FAIL\u{1f}node01\u{1f}job-{number}").unwrap();
    }
    site.write("runs", rows);
    site.program("sacct", "cat \"$SITE/runs\"");
    let jobs = (100..400).map(|number| (id(number), key(&format!("job-{number}")))).collect();
    let command = Requeued { jobs };
    let roomy = site.run(&command);
    assert_eq!(roomy.len(), 300);
    silently(&site);
    in_any_room(&site, &command, (8..64).step_by(4), |answer| answer == roomy);
    while_full(&site, &command, &[" sacct "], |answer| answer == roomy);
}

#[test]
fn no_allocation_is_lost_for_want_of_room() {
    let site = Site::new();
    let mut rows = String::new();
    for number in 100..400 {
        writeln!(
            rows,
            "\u{1f}{number}\u{1f}COMPLETED\u{1f}1700000000\u{1f}9\u{1f}gpu\u{1f}gres/gpu=1\u{1f}00:00:01\u{1f}job-{number}"
        )
        .unwrap();
    }
    site.write("runs", rows);
    site.program("sacct", "cat \"$SITE/runs\"");
    let jobs = (100..400).map(|number| (id(number), key(&format!("job-{number}")))).collect();
    let command = Allocations { jobs };
    let roomy = site.run(&command);
    assert!(roomy.iter().all(remote::Accounted::is_over));
    silently(&site);
    in_any_room(&site, &command, (8..64).step_by(4), |answer| answer == roomy);
    while_full(&site, &command, &[" sacct "], |answer| answer == roomy);
}
