//! Launchers whose processes end apart: aids of a command, and a program that starts others.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use remote::{
    BatchScript, Kind,
    launcher::{Bootstrap, Launcher, Ray, Rendezvous, Site, Start, Torchrun},
};

use crate::{
    components::{record, table},
    node::{Node, stderr},
};

/// The command, and an aid of it that writes down its start and its end.
#[derive(Debug)]
struct Aided;

impl Launcher for Aided {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let start = |suffix, aids, program: &[String]| Start {
            suffix,
            aids,
            nodes: site.nodes,
            tasks_per_node: 1,
            options: vec![],
            ranks: vec![],
            variables: vec![],
            records: false,
            restarts: false,
            program: program.to_vec(),
        };
        let text = "trap 'echo aid ended >>$SITE/order; exit 9' TERM; echo aid >>$SITE/order; touch $SITE/aided; \
                    until [ -e $SITE/aid-dies ]; do sleep 0.1; done; exit 5";
        let aid = ["bash", "-c", text].map(str::to_owned);
        vec![start("-aid", true, &aid), start("", false, site.argv)]
    }
}

fn aided(node: &Node, steps: &[(&str, Kind, &str)]) -> BatchScript {
    let mut script = table(node, steps);
    for component in &mut script.components {
        component.launcher = Arc::new(Aided);
    }
    script
}

#[test]
fn what_aids_a_step_starts_and_ends_with_it() {
    let node = Node::new();
    let step = "until [ -e $SITE/aided ]; do sleep 0.1; done; rm $SITE/aided; echo step >>$SITE/order";
    let output = node.run(&aided(&node, &[("a", Kind::Step, step), ("b", Kind::Step, step)]), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(node.read("order"), "aid\nstep\naid ended\n".repeat(2));
    assert_eq!(record(&node), ["done", "a 0", "a-aid 9", "b 0", "b-aid 9"]);
}

#[test]
fn the_code_of_an_aided_step_is_that_of_the_job() {
    let node = Node::new();
    let step = "until [ -e $SITE/aided ]; do sleep 0.1; done; exit 7";
    let output = node.run(&aided(&node, &[("a", Kind::Step, step), ("b", Kind::Step, "true")]), 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(record(&node), ["step a", "a 7", "a-aid 9"]);
}

#[test]
fn an_aid_that_ends_before_its_step_ends_the_job() {
    let node = Node::new();
    let step = "trap 'exit 0' TERM; touch $SITE/aid-dies; while :; do sleep 0.1; done";
    let output = node.run(&aided(&node, &[("a", Kind::Step, step)]), 42, 0);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(record(&node)[0], "service a-aid");
}

/// A launcher that ends its other process when one has failed, and returns 1, as torchrun does.
const TORCHRUN: &str = "#!/bin/bash
while [[ $1 == --* ]]; do shift; done
RANK=0 \"$@\" & RANK=1 \"$@\" &
wait -n && exit
kill %1 %2
wait
exit 1
";

fn program(node: &Node, name: &str, text: &str) {
    let path = node.file(&format!("bin/{name}"));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_first_process_of_a_launcher_to_fail_gives_the_code() {
    let node = Node::new();
    program(&node, "torchrun", TORCHRUN);
    let text = "trap 'echo ended; exit 3' TERM; touch $SITE/rank.$RANK; \
                until [ -e $SITE/rank.0 -a -e $SITE/rank.1 ]; do sleep 0.1; done; \
                if [ $RANK = 1 ]; then exit 7; fi; while :; do sleep 0.1; done";
    let mut script = table(&node, &[("main", Kind::Step, text)]);
    let launcher = Torchrun { nproc_per_node: Some(2), rendezvous: Rendezvous::C10d, args: vec![] };
    script.components[0].launcher = Arc::new(launcher);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ended\n");
}

/// Ray on one node, which gives up as often as `$SITE/failures` has lines. The service's own wait for its nodes is python3's.
const RAY: &str = r#"#!/bin/bash
echo "$1" >>"$SITE/tries"
if [ "$1" = --version ]; then
  echo "ray, version 2.55.1"
elif [ "$(grep -cv version "$SITE/tries")" -le "$(wc -l <"$SITE/failures")" ]; then
  exit 1
elif [ "$1" = start ]; then
  for word; do case $word in --temp-dir=*) : >"${word#*=}/ray_current_cluster" ;; esac; done
  touch "$SITE/started"
  exec sleep 600
else
  touch "$SITE/started"
  until [ "$1" = -- ]; do shift; done
  # It says so if the command fails, but returns 0.
  "${@:2}"
fi
"#;

const PYTHON: &str = r#"#!/bin/bash
if [ "$2" = "import grpc" ]; then exit 1; fi
until [ -e "$SITE/started" ]; do sleep 0.1; done
"#;

/// The code of a job whose Ray gives up so often and whose command returns `code`, what was called, and how often the command ran.
fn with_ray(bootstrap: Bootstrap, failures: usize, code: u8) -> (Option<i32>, usize, usize) {
    let node = Node::new();
    program(&node, "ray", RAY);
    program(&node, "python3", PYTHON);
    fs::write(node.file("failures"), "\n".repeat(failures)).unwrap();
    fs::write(node.file("runs"), "").unwrap();
    let mut script = table(&node, &[("main", Kind::Step, &format!("echo run >>$SITE/runs; exit {code}"))]);
    script.components[0].launcher = Arc::new(Ray { bootstrap, args: vec![] });
    // Ray's directory has the id in its name.
    let job = std::process::id();
    fs::write(node.file("told"), format!("JobId={job} JobName=job-1 JobState=RUNNING PreemptTime=None \n"))
        .unwrap();
    let mut command = node.command(&script, job, 0);
    let code = command.env("SLURM_PROCID", "0").output().unwrap().status.code();
    let tries = node.read("tries").lines().filter(|line| !line.contains("version")).count();
    (code, tries, node.read("runs").lines().count())
}

#[test]
fn ray_is_started_again_until_the_command_has_begun() {
    for bootstrap in [Bootstrap::Steps, Bootstrap::SymmetricRun] {
        assert_eq!(with_ray(bootstrap, 0, 0), (Some(0), 1, 1), "{bootstrap:?}");
        assert_eq!(with_ray(bootstrap, 2, 7), (Some(7), 3, 1), "{bootstrap:?}");
        assert_eq!(with_ray(bootstrap, 9, 0), (Some(1), 3, 0), "{bootstrap:?}");
    }
}
