//! Polling the tasks of job arrays.

use remote::{Poll, PollAnswer, WatchedArray};
use slurm::SlurmState;

use crate::{
    poll::{record, watched},
    site::{Site, id},
};

fn array_poll(site: &Site, known: &[u32], rest: &str) -> PollAnswer {
    let task = |index: &u32| remote::Watched {
        index: Some(*index),
        state_dir: site.path(&format!("state/7/tasks/{index}")),
        results_dir: site.path(&format!("results/7/{index}")),
        ..watched(site, 7)
    };
    site.run(&Poll {
        jobs: known.iter().map(task).chain([watched(site, 8)]).collect(),
        arrays: vec![WatchedArray { id: id(7), name: "job-7".parse().unwrap(), rest: rest.parse().unwrap() }],
        status_bytes_per_file: 1000,
        status_bytes_total: 2500,
        others: Some("tao-".parse().unwrap()),
    })
}

/// `place` is the id of the row, then for a task the id and index of its array.
fn row(place: &str, state: &str) -> String {
    format!("{place}|{state}|None|n1|1700000000|1700000001|N/A|polar|job-7\n")
}

#[test]
fn tasks_that_wait_together_are_one_row_whatever_their_number() {
    let site = Site::new();
    let running = row("9~7~3", "RUNNING") + &row("10~7~4", "RUNNING") + &row("11~7~0", "COMPLETED");
    site.write("queue", row("7~7~5-9000:2%5", "PENDING") + &running);
    let answer = array_poll(&site, &[3], "4-9000");
    let rows = &answer.arrays.queue[&id(7)];
    assert_eq!(rows.waiting.len(), 1);
    assert_eq!((rows.waiting[0].0.len(), rows.waiting[0].0.least()), (4498, Some(5)));
    let mut tasks: Vec<_> = rows.tasks.iter().map(|(index, row)| (*index, row.id)).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, [(3, id(7)), (4, id(7))], "task 0 had ended before, and is not reported again");
    assert!(answer.arrays.is_whole(id(7)));
    assert!(answer.arrays.listed(id(7)).contains(4) && !answer.arrays.listed(id(7)).contains(6));
}

#[test]
fn the_last_task_has_the_id_of_its_array() {
    let site = Site::new();
    site.write("queue", row("7~7~40", "RUNNING"));
    let rows = &array_poll(&site, &[], "40").arrays.queue[&id(7)];
    assert_eq!(rows.tasks[&40].state, SlurmState::Running);
}

#[test]
fn accounting_is_asked_for_single_tasks_and_marks_are_read() {
    let site = Site::new();
    site.write("queue", row("9~7~3", "COMPLETED"));
    site.write("state/7/tasks/3/exit", "7 0 0 1700000000\n");
    site.write("state/7/tasks/4/exit", "7 0 9 1700000000\n");
    let of_task = record(7, "FAILED", "9:0", "job-7").replacen('7', "7_4", 1);
    let rest = record(7, "PENDING", "0:0", "job-7").replacen('7', "7_[5-9%5]", 1);
    site.write("sacct.rows", of_task + &rest);
    let answer = array_poll(&site, &[3, 4], "");
    assert!(site.read("sacct.calls").contains("-j 7,8"), "{}", site.read("sacct.calls"));
    assert_eq!(answer.arrays.records.keys().collect::<Vec<_>>(), [&(id(7), 4)]);
    assert_eq!(answer.markers["job-7_3"].exit.unwrap().code, 0);
    assert_eq!(answer.markers["job-7_4"].exit.unwrap().code, 9);
}

#[test]
fn tasks_that_were_canceled_before_they_began_have_one_record() {
    let site = Site::new();
    site.write("queue", row("7~7~4-9%2", "CANCELLED") + &row("9~7~1", "RUNNING") + &row("8~7~0", "FAILED"));
    let of = |place: &str, state: &str| record(7, state, "0:0", "job-7").replacen('7', place, 1);
    // As recorded: those that have begun stay in the record of the rest.
    let all = of("7_2", "COMPLETED") + &of("7_3", "FAILED") + &of("7_[1-9%2]", "CANCELLED by 1000");
    site.write("sacct.rows", all);
    let answer = array_poll(&site, &[0, 1, 3, 4, 9], "");
    assert!(site.read("sacct.calls").contains("-j 7_0,7,8"), "{}", site.read("sacct.calls"));
    let state = |index| answer.arrays.record(id(7), index).map(|row| (row.state.clone(), row.canceled_by));
    let canceled = Some((SlurmState::Cancelled, Some(1000)));
    assert_eq!((state(4), state(9)), (canceled.clone(), canceled));
    assert_eq!(state(3), Some((SlurmState::Failed, None)), "it has a record of its own");
    assert_eq!(state(1), None, "it runs");
    assert_eq!(answer.arrays.records.keys().collect::<Vec<_>>(), [&(id(7), 3)], "2 was not asked for");
}

#[test]
fn accounting_is_asked_at_once_about_a_rest_that_was_canceled() {
    let site = Site::new();
    site.write("queue", row("7~7~4-9%2", "CANCELLED"));
    assert!(array_poll(&site, &[], "4-9").arrays.records.is_empty());
    assert!(site.read("sacct.calls").contains("-j 7,8"), "{}", site.read("sacct.calls"));
    site.write("sacct.calls", "");
    array_poll(&site, &[], "");
    assert!(site.read("sacct.calls").contains("-j 8"), "all of them have runs: {}", site.read("sacct.calls"));
}

#[test]
fn a_rest_that_was_canceled_task_by_task_has_lost_its_indices() {
    let site = Site::new();
    // As recorded after scancel --name.
    site.write("queue", row("7~7~N/A", "CANCELLED"));
    let own = record(7, "COMPLETED", "0:0", "job-7").replacen('7', "7_3", 1);
    site.write("sacct.rows", record(7, "CANCELLED by 0", "0:0", "job-7") + &own);
    let answer = array_poll(&site, &[3], "4-9").arrays;
    let rows = &answer.queue[&id(7)];
    assert_eq!(rows.waiting.iter().map(|(set, _)| set.len()).collect::<Vec<_>>(), [6]);
    assert_eq!(rows.waiting[0].1.state, SlurmState::Cancelled);
    assert_eq!(answer.record(id(7), 4).unwrap().canceled_by, Some(0));
    assert_eq!(answer.record(id(7), 3).unwrap().state, SlurmState::Completed);
    assert!(site.read("sacct.calls").contains("-j 7,8"), "{}", site.read("sacct.calls"));
    let of_one = array_poll(&site, &[3], "8").arrays;
    assert_eq!(of_one.queue[&id(7)].tasks[&8].state, SlurmState::Cancelled);
    assert!(array_poll(&site, &[3], "").arrays.queue.is_empty(), "all its tasks are known");
}

#[test]
fn the_only_task_that_never_began_is_a_set_of_one() {
    let site = Site::new();
    site.write("queue", row("7~7~4", "CANCELLED"));
    site.write("sacct.rows", record(7, "CANCELLED by 1000", "0:0", "job-7").replacen('7', "7_[4]", 1));
    let records = array_poll(&site, &[4], "").arrays;
    assert!(site.read("sacct.calls").contains("-j 7,8"), "{}", site.read("sacct.calls"));
    assert_eq!(records.record(id(7), 4).unwrap().state, SlurmState::Cancelled);
    assert!(records.records.is_empty(), "{records:?}");
}

#[test]
fn a_row_that_was_cut_proves_no_task_missing() {
    for cut in ["7~7~5-90", "7~7"] {
        let site = Site::new();
        // As the real one that is killed while it writes.
        site.write("queue", row(cut, "PENDING"));
        let fake =
            site.read("bin/squeue").replace("printf '%b\\n' \"$row\"", "printf '%s\\n' \"${row%%|job-*}\"");
        site.program("squeue", &fake);
        let answer = array_poll(&site, &[], "5-90");
        assert!(!answer.arrays.is_whole(id(7)), "{cut}: {answer:?}");
    }
}

#[test]
fn indices_that_make_no_sense_prove_no_task_missing() {
    let site = Site::new();
    site.write("queue", row("7~7~5-...", "PENDING"));
    assert!(!array_poll(&site, &[], "5-90").arrays.is_whole(id(7)));
}

#[test]
fn an_array_that_nobody_asked_for_is_one_job() {
    let site = Site::new();
    let stray = |place: &str| format!("{place}|RUNNING|None|n1|1700000000|1700000001|N/A|polar|tao-job-x\n");
    site.write("queue", stray("21~20~1") + &stray("20~20~2-9"));
    let answer = array_poll(&site, &[], "");
    let rows = crate::poll::rows(&answer);
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [id(20)]);
}

#[test]
fn a_task_that_has_ended_does_not_hide_one_that_nobody_asked_for() {
    let site = Site::new();
    let stray = |place: &str, state: &str| {
        format!("{place}|{state}|None|n1|1700000000|1700000001|N/A|polar|tao-job-x\n")
    };
    site.write("queue", stray("23~20~3", "COMPLETED") + &stray("22~20~2", "PENDING"));
    let answer = array_poll(&site, &[], "");
    let rows = crate::poll::rows(&answer);
    let states: Vec<_> = rows.iter().map(|row| (row.id, row.state.as_str())).collect();
    assert_eq!(states, [(id(20), "PENDING")]);
}
