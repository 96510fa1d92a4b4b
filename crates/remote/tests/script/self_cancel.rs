//! A job whose own program cancels it leaves a mark.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use test_case::test_case;

use crate::node::Node;

#[test_case("scancel $SLURM_JOB_ID" => true ; "by its id")]
#[test_case("scancel -f 42" => true ; "by its id, with an option before")]
#[test_case("scancel 41 42" => true ; "among others")]
#[test_case("scancel --me" => true ; "with everything of its user")]
#[test_case("scancel -u someone" => true ; "with everything of a user")]
#[test_case("scancel -u 1001" => true ; "with everything of a user, by his number")]
#[test_case("scancel -p 8 --me" => true ; "with everything of a partition that is called like a job")]
#[test_case("scancel --signal=KILL 42" => true ; "by SIGKILL")]
#[test_case("scancel -s kill 42" => true ; "by SIGKILL, written small")]
#[test_case("scancel -s 9 42" => true ; "by the number of SIGKILL")]
#[test_case("sh -c 'exec scancel 42'" => true ; "from another shell")]
#[test_case("scancel 41" => false ; "another job")]
#[test_case("scancel 42.0" => false ; "a step")]
#[test_case("scancel -n other" => false ; "a name")]
#[test_case("scancel -n 42" => false ; "a name that is like its id")]
#[test_case("scancel --name=other" => false ; "a name, written otherwise")]
#[test_case("scancel --signal=USR1 42" => false ; "a signal that only its program hears")]
#[test_case("scancel -s USR1 42" => false ; "the same, written otherwise")]
#[test_case("scancel -sUSR1 42" => false ; "the same, in one word")]
#[test_case("true" => false ; "not at all")]
fn a_job_that_cancels_itself_says_so(text: &str) -> bool {
    let node = Node::new();
    let output = node.run(&node.script(&["bash", "-c", text]), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", crate::stderr(&output));
    assert_eq!(node.has("scancel.calls"), text.contains("scancel"), "the real one is called all the same");
    node.has("state/self_canceled")
}

#[test]
fn each_run_has_a_scancel_of_its_own_that_others_do_not_change() {
    let node = Node::new();
    node.run(&node.script(&["false"]), 42, 0);
    // Whoever has it open goes on with what it was.
    fs::hard_link(node.file("state/bin/scancel"), node.file("opened")).unwrap();
    node.run(&node.script(&["false"]), 42, 1);
    let names: Vec<_> =
        fs::read_dir(node.file("state/bin")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["scancel"], "nothing is left beside it");
    let of = |name| fs::metadata(node.file(name)).unwrap();
    assert_eq!(of("state/bin/scancel").permissions().mode() & 0o777, 0o755);
    assert_ne!(of("opened").ino(), of("state/bin/scancel").ino());
}

#[test]
fn a_job_runs_where_its_scancel_cannot_be_written() {
    let node = Node::new();
    fs::write(node.file("state/bin"), "").unwrap();
    let output = node.run(&node.script(&["scancel", "42"]), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", crate::stderr(&output));
    assert!(node.has("scancel.calls") && !node.has("state/self_canceled"));
    assert!(crate::stderr(&output).contains("bin/scancel cannot be written"), "{}", crate::stderr(&output));
}

#[test]
fn a_scancel_that_was_not_finished_takes_no_room() {
    let node = Node::new();
    fs::write(node.file("bin/chmod"), "#!/bin/bash\nexit 1\n").unwrap();
    fs::set_permissions(node.file("bin/chmod"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = node.run(&node.script(&["true"]), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", crate::stderr(&output));
    assert!(crate::stderr(&output).contains("bin/scancel cannot be written"), "{}", crate::stderr(&output));
    assert_eq!(fs::read_dir(node.file("state/bin")).unwrap().count(), 0);
}

/// A site may set it for all its users, and so it is set for every script. GNU programs then take what follows an operand for
/// operands.
#[test]
fn a_job_with_posixly_correct_runs_as_any_other() {
    let node = Node::new();
    let script = node.script(&["bash", "-c", "scancel 42; echo $POSIXLY_CORRECT; exit 3"]);
    let output = node.command(&script, 42, 0).env("POSIXLY_CORRECT", "1").output().unwrap();
    assert_eq!((output.status.code(), crate::stderr(&output).as_str()), (Some(3), ""));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "it is left to the program");
    assert!(node.has("state/self_canceled"));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "3"]);
}
