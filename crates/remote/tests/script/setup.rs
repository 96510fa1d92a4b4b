//! What comes before the program: the lines of setup, and its directory.

use std::fs;

use remote::BatchScript;
use test_case::test_case;

use crate::node::{Node, on_nodes, stderr};

/// A step that starts like this, with these lines of setup.
fn set_up(node: &Node, lines: &[&str], argv: &[&str]) -> BatchScript {
    let lines = lines.join("\0") + "\0";
    fs::write(node.file("setup lines"), lines).unwrap();
    let mut script = node.script(argv);
    script.components[0].setup = Some(node.path("setup lines"));
    script
}

#[test]
fn setup_comes_before_the_program_and_changes_its_environment() {
    let node = Node::new();
    let lines = [
        "unset NOT_SET; echo \"$NOT_SET\" >/dev/null; false || true",
        "activate() {\n  export FROM_SETUP=\"$1 $GIVEN\"\n}",
        "activate 'a b'; set -- lost",
    ];
    let script = set_up(&node, &lines, &["bash", "-c", "echo $FROM_SETUP $1", "x", "word"]);
    node.give(&[("GIVEN", "c"), ("IFS", "/")]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a b c word\n");
}

#[test_case("module load cuda/0 2>/dev/null" ; "a command that fails")]
#[test_case("if then" ; "what is no bash")]
#[test_case("return 3" ; "an early return")]
fn a_line_of_setup_that_fails_ends_the_job_before_its_program(line: &str) {
    for nodes in [1, 2] {
        let node = Node::new();
        let script = set_up(&node, &["true", line, "true"], &["touch", node.path("touched").as_str()]);
        let output = node.run(&on_nodes(script, nodes), 42, 0);
        assert_eq!(output.status.code(), Some(116), "{}", stderr(&output));
        assert!(!node.has("touched"));
    }
}

#[test]
fn a_program_starts_in_its_directory() {
    let node = Node::new();
    let mut script = node.script(&["pwd"]);
    script.components[0].workdir = Some(node.path("results"));
    let output = node.run(&script, 42, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", node.path("results")));
    let node = Node::new();
    let mut script = node.script(&["pwd"]);
    script.components[0].workdir = Some(node.path("nowhere"));
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(117), "{}", stderr(&output));
    assert!(stderr(&output).contains("/nowhere"), "{}", stderr(&output));
}
