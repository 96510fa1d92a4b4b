//! Whatever a caller writes, it is data: the shell that runs the script reads it as one word.

use std::{
    fs::OpenOptions,
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use crate::node::{Node, on_nodes, stderr};

/// Texts with everything that a shell could take for its own.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[^\0]{0,12}",
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("$(touch pwned)".to_owned()),
        Just("`touch pwned`".to_owned()),
        Just("\n#SBATCH --uid=0\n".to_owned()),
        Just("\\".to_owned()),
        Just("; exit 1 #".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_text_arrives_as_it_was_written(word in text(), value in text(), nodes in 1_u32..3) {
        let node = Node::new();
        let show = ["bash", "-c", "printf '%s\\0%s' \"$1\" \"$VALUE\"", "x", word.as_str()];
        let script = on_nodes(node.script(&show), nodes);
        node.give(&[("VALUE", &value)]);
        let directives = script.render().unwrap().lines().take_while(|line| line.starts_with('#')).count();
        let output = node.run(&script, 42, 0);
        prop_assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        prop_assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{word}\0{value}"));
        // sbatch stops reading directives at the first line that is none.
        prop_assert!(directives < 24);
    }
}

#[test]
fn markers_that_a_job_has_made_endless_are_no_markers() {
    let node = Node::new();
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 3"]), 42, 0).status.code(), Some(3));
    for name in ["state/exit", "state/started"] {
        std::fs::File::create(node.file(name)).unwrap().set_len(1 << 40).unwrap();
    }
    let begun = Instant::now();
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 4"]), 42, 1).status.code(), Some(4));
    assert!(begun.elapsed() < Duration::from_mins(5), "{:?}", begun.elapsed());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "who waits at a pipe is freed after a real time")]
fn a_pipe_in_the_place_of_the_exit_record_does_not_hold_up_the_end() {
    let node = Node::new();
    let record = node.file("state/.exit.42");
    let replace = "rm -f \"$1\"; mkfifo \"$1\"; exit 5";
    let script = node.script(&["bash", "-c", replace, "x", record.to_str().unwrap()]);
    // Frees a script that waits at the pipe, so that the test fails and does not hang.
    let (begun, long) = (Instant::now(), Duration::from_mins(5));
    thread::spawn(move || {
        thread::sleep(long);
        OpenOptions::new().read(true).write(true).open(record)
    });
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(5));
    assert!(begun.elapsed() < long, "it has waited until somebody opened the pipe");
}
