//! Jobs of several components: concurrent steps, of which one ends the others when it fails, steps in order, and services.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use remote::{BatchScript, Component, Container, Kind, Log, Nodes, Place, Value};

use crate::node::{Node, component, on_nodes, stderr};

/// Three roles at the same time, on three nodes; each acts by its role.
fn script(node: &Node, text: &str) -> BatchScript {
    fs::write(node.file("hosts"), "node01\nnode02\nnode03\n").unwrap();
    let container = Container {
        image: "/lustre/cosmos.sqsh".to_owned(),
        mounts: vec![],
        hook_env: BTreeMap::new(),
        home: Some(false),
    };
    let role = |name: &str, first: u32, count: u32, kind| Component {
        name: name.parse().unwrap(),
        kind,
        nodes: Nodes { first, count },
        place: Place::Pyxis(container.clone()),
        log: Log::Own,
        variables: vec![("COSMOS_NODE_ROLE".parse().unwrap(), Value::Text(name.to_owned()))],
        ..component(&["bash", "-c", text])
    };
    let mut script = node.script(&[]);
    script.directives.nodes = 3;
    script.directives.gpus_per_node = 8;
    let hosts = |first, count| Value::Hosts(Nodes { first, count });
    script.variables = vec![
        ("COSMOS_CONTROLLER_HOST".parse().unwrap(), Value::HostPort(0, 8082)),
        ("CONTROLLER_NODE".parse().unwrap(), hosts(0, 1)),
        ("POLICY_NODES".parse().unwrap(), hosts(0, 2)),
        ("ROLLOUT_NODES".parse().unwrap(), hosts(2, 1)),
    ];
    script.components = vec![
        role("controller", 0, 1, Kind::Step),
        role("policy", 0, 2, Kind::With),
        role("rollout", 2, 1, Kind::With),
    ];
    script
}

#[test]
fn each_role_knows_its_place_and_has_its_own_logs() {
    let node = Node::new();
    let show = "echo $COSMOS_NODE_ROLE $COSMOS_CONTROLLER_HOST $CONTROLLER_NODE / $POLICY_NODES / $ROLLOUT_NODES; \
                echo err >&2";
    let output = node.run(&script(&node, show), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for role in ["controller", "policy", "rollout"] {
        let out = node.read(&format!("logs/job-1-42/{role}/0.out"));
        assert_eq!(out, format!("{role} node01:8082 node01 / node01 node02 / node03\n"));
        assert_eq!(node.read(&format!("logs/job-1-42/{role}/0.err")), "err\n");
    }
    let args = node.read("srun.args");
    for (nodes, list) in [(1, "node01"), (2, "node01,node02"), (1, "node03")] {
        let words = format!("--nodes={nodes}\0--ntasks={nodes}\0--nodelist={list}\0");
        assert!(args.contains(&words), "{words:?} in {args:?}");
    }
    assert_eq!(args.matches("--overlap\0").count(), 3);
    assert!(!node.has("scancel.calls"));
}

#[test_case::test_case("", "policy"; "its directory")]
#[test_case::test_case("policy", "policy/0.err"; "its file")]
fn a_run_whose_logs_cannot_be_made_does_not_begin(directory: &str, blocked: &str) {
    let node = Node::new();
    fs::create_dir_all(node.file(&format!("logs/job-1-42/{directory}"))).unwrap();
    // A link to itself can be neither a directory nor a file, whoever asks.
    std::os::unix::fs::symlink(
        if directory.is_empty() { "policy" } else { "0.err" },
        node.file(&format!("logs/job-1-42/{blocked}")),
    )
    .unwrap();
    let output = node.run(&script(&node, "touch touched"), 42, 0);
    assert_eq!(output.status.code(), Some(119), "{}", stderr(&output));
    assert!(stderr(&output).contains("its logs cannot be written to"), "{}", stderr(&output));
    assert!(!node.has("srun.args") && !node.has("state/exit"));
}

#[test]
fn a_role_that_fails_ends_the_others_and_gives_its_code() {
    let node = Node::new();
    let text = "if [ $COSMOS_NODE_ROLE = policy ]; then exit 7; fi; exec sleep 600";
    let output = node.run(&script(&node, text), 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("the step policy has ended with code 7"), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[2], "7");
    // As a signal for the programs: the job does not cancel itself.
    assert_eq!(node.read("scancel.calls"), "--signal=TERM 42\n");
}

#[test]
fn the_other_roles_have_time_to_put_their_work_in_order() {
    let node = Node::new();
    let text = "trap 'sleep 0.3; echo saved; exit 0' TERM; touch $SITE/$COSMOS_NODE_ROLE.$SLURM_NODEID; \
                if [ $COSMOS_NODE_ROLE = rollout ]; then \
                until [ -e $SITE/policy.0 -a -e $SITE/policy.1 -a -e $SITE/controller.1 ]; do sleep 0.1; done; exit 7; fi; \
                while :; do sleep 0.1; done";
    let output = node.run(&script(&node, text), 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    for log in ["controller/0.out", "policy/0.out", "policy/1.out"] {
        assert_eq!(node.read(&format!("logs/job-1-42/{log}")), "saved\n", "{log}");
    }
}

#[test]
fn a_role_that_ends_well_leaves_the_others_alone() {
    let node = Node::new();
    let text = "if [ $COSMOS_NODE_ROLE = controller ]; then exit 0; fi; sleep 1.5; echo late";
    assert_eq!(node.run(&script(&node, text), 42, 0).status.code(), Some(0));
    assert_eq!(node.read("logs/job-1-42/rollout/0.out"), "late\n");
}

#[test]
fn fewer_nodes_than_the_roles_need_is_said_so() {
    let node = Node::new();
    let script = script(&node, "true");
    fs::write(node.file("hosts"), "node01\n").unwrap();
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(122));
    assert!(stderr(&output).contains("the job needs 3 nodes, but has 1"), "{}", stderr(&output));
}

#[test]
fn every_role_is_warned() {
    let node = Node::new();
    let text = "trap 'echo warned; exit 0' USR1; : >\"$_tao_begun\"; \
                if [ $COSMOS_NODE_ROLE = policy -a $SLURM_NODEID = 1 ]; then sleep 1; kill -USR1 $BATCH; fi; \
                while :; do sleep 0.1; done";
    let output = node.run(&script(&node, text), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for log in ["controller/0", "policy/0", "policy/1", "rollout/0"] {
        assert_eq!(node.read(&format!("logs/job-1-42/{log}.out")), "warned\n", "{log}");
    }
}

#[test]
fn a_role_that_fails_at_its_warning_ends_one_that_has_not_begun() {
    let node = Node::new();
    // The rollout never says that it has begun, so it is never warned.
    let text = "trap 'echo ended; exit 0' TERM; \
                if [ $COSMOS_NODE_ROLE = policy ]; then trap 'exit 7' USR1; else trap '' USR1; fi; \
                if [ $COSMOS_NODE_ROLE != rollout ]; then : >\"$_tao_begun\"; fi; \
                if [ $COSMOS_NODE_ROLE = policy -a $SLURM_NODEID = 1 ]; then sleep 1; kill -USR1 $BATCH; fi; \
                while :; do sleep 0.1; done";
    let output = node.run(&script(&node, text), 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(node.read("logs/job-1-42/rollout/0.out"), "ended\n");
}

#[test]
fn the_code_is_that_of_the_first_task_to_fail_and_not_of_those_killed_because_of_it() {
    let node = Node::new();
    // srun returns the highest code: 143 of a task that it has killed.
    std::fs::write(node.file("highest"), "143").unwrap();
    let text = "if [ $COSMOS_NODE_ROLE = rollout ]; then exit 7; fi; exec sleep 600";
    let output = node.run(&script(&node, text), 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("the step rollout has ended with code 7"), "{}", stderr(&output));
}

#[test]
fn a_signal_to_a_task_whose_container_is_being_made_is_waited_out() {
    let node = Node::new();
    std::fs::write(node.file("highest"), "143").unwrap();
    // The real one dies of a signal while it pulls its image.
    let program = "#!/bin/bash\nkill -TERM \"$PPID\"\nexit 255\n";
    fs::write(node.file("bin/apptainer"), program).unwrap();
    fs::set_permissions(node.file("bin/apptainer"), fs::Permissions::from_mode(0o755)).unwrap();
    let image = "docker://registry/a:1".to_owned();
    let container = Container { image, mounts: Vec::new(), hook_env: BTreeMap::new(), home: None };
    let mut script = on_nodes(node.script(&["true"]), 2);
    script.components[0].place = Place::Apptainer(container);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(255), "{}", stderr(&output));
}

#[test]
fn several_plain_nodes_end_with_the_first_code_too() {
    let node = Node::new();
    std::fs::write(node.file("highest"), "143").unwrap();
    let script = on_nodes(node.script(&["bash", "-c", "exit 5"]), 2);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(5));
    // What an earlier run has left says nothing about this one.
    let script = on_nodes(node.script(&["bash", "-c", "kill -KILL $PPID"]), 2);
    assert_eq!(node.run(&script, 42, 1).status.code(), Some(143));
}

#[test]
fn a_program_on_several_nodes_has_time_to_put_its_work_in_order() {
    let node = Node::new();
    let text = "trap 'sleep 0.3; echo saved; exit 0' TERM; kill -TERM $PPID $$; while :; do sleep 0.1; done";
    let script = on_nodes(node.script(&["bash", "-c", text]), 2);
    let output = node.run(&script, 42, 0);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"saved\n"[..]));
}

/// Components on one node, one after the other in the table.
pub(crate) fn table(node: &Node, components: &[(&str, Kind, &str)]) -> BatchScript {
    let components = components.iter().map(|(name, kind, text)| Component {
        name: name.parse().unwrap(),
        kind: *kind,
        ..component(&["bash", "-c", text])
    });
    BatchScript { components: components.collect(), ..node.script(&[]) }
}

/// The lines of the exit record after the first: what ended the job, and each component with its code.
pub(crate) fn record(node: &Node) -> Vec<String> {
    let text = node.read("state/exit");
    let line = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    text.lines().skip(1).map(line).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn steps_run_in_order_and_the_record_has_each() {
    let node = Node::new();
    let script = table(
        &node,
        &[
            ("first", Kind::Step, "sleep 0.5; echo first; touch $SITE/first"),
            ("beside", Kind::With, "until [ -e $SITE/first ]; do sleep 0.1; done; sleep 1; echo beside"),
            ("last", Kind::Step, "echo last"),
        ],
    );
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nbeside\nlast\n");
    assert_eq!(record(&node), ["done", "first 0", "beside 0", "last 0"]);
}

/// bash 5.2 gives up a function if a signal comes while it reads a `$()`: it said `trap: line 2: unexpected EOF while looking for
/// matching` and left out the steps after a service.
#[test]
fn a_run_that_has_left_out_steps_has_not_ended_well() {
    let node = Node::new();
    let script = table(&node, &[("first", Kind::Step, "echo first"), ("last", Kind::Step, "echo last")]);
    let text = script.render().unwrap();
    let broken = text.replace("  _tao_component last step", "  return\n  _tao_component last step");
    assert_ne!(text, broken);
    std::fs::write(node.file("broken.sh"), broken).unwrap();
    let mut run = node.command(&script, 42, 0);
    std::fs::copy(node.file("broken.sh"), run.get_args().next().unwrap()).unwrap();
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(118), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\n");
    assert!(!node.has("state/exit"));
}

#[test]
fn no_step_follows_one_that_failed() {
    let node = Node::new();
    let script = table(&node, &[("first", Kind::Step, "exit 7"), ("last", Kind::Step, "echo last")]);
    let output = node.run(&script, 42, 0);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(7), 0), "{}", stderr(&output));
    assert_eq!(record(&node), ["step first", "first 7"]);
}

/// A controller that has lost the job may kill the script while a service ends.
#[test]
fn what_the_steps_have_done_is_recorded_before_the_services_end() {
    let node = Node::new();
    let serve = "trap 'head -n 1 $SITE/state/exit >$SITE/seen; exit 9' TERM; touch $SITE/serves; while :; do sleep 0.1; done";
    let score = "until [ -e $SITE/serves ]; do sleep 0.1; done";
    let script = table(&node, &[("model", Kind::Service, serve), ("score", Kind::Step, score)]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(node.read("seen").starts_with("42 0 0 "), "{}", node.read("seen"));
    assert_eq!(record(&node), ["done", "score 0", "model 9"]);
}

#[test]
fn services_are_ended_after_the_steps_and_their_codes_do_not_count() {
    let node = Node::new();
    let serve = "trap 'echo stopped; exit 9' TERM; touch $SITE/serves; while :; do sleep 0.1; done";
    let script = table(
        &node,
        &[
            ("model", Kind::Service, serve),
            ("score", Kind::Step, "until [ -e $SITE/serves ]; do sleep 0.1; done; sleep 0.5; echo scored"),
            ("report", Kind::Step, "echo reported"),
        ],
    );
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "scored\nreported\nstopped\n");
    assert_eq!(record(&node), ["done", "score 0", "report 0", "model 9"]);
}

#[test_case::test_case(9, 9; "with its code")]
#[test_case::test_case(0, 114; "with a code of its own if that was 0")]
fn a_service_that_ends_before_the_steps_ends_the_job(code: u8, expected: i32) {
    let node = Node::new();
    let serve = format!("until [ -e $SITE/steps ]; do sleep 0.1; done; exit {code}");
    let step = "trap 'echo saved; exit 0' TERM; touch $SITE/steps; while :; do sleep 0.1; done";
    let script = table(
        &node,
        &[
            ("model", Kind::Service, &serve),
            ("score", Kind::Step, step),
            ("report", Kind::Step, "echo never"),
        ],
    );
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "saved\n");
    assert!(
        stderr(&output).contains(&format!("the service model has ended with code {expected}")),
        "{}",
        stderr(&output)
    );
    assert_eq!(record(&node)[0], "service model");
}

#[test]
fn a_step_that_fails_is_ended_apart_from_the_services() {
    let node = Node::new();
    let serve = "trap 'echo stopped; exit 0' TERM; while :; do sleep 0.1; done";
    let beside = "trap 'echo saved; sleep 1; exit 0' TERM; touch $SITE/beside; while :; do sleep 0.1; done";
    let script = table(
        &node,
        &[
            ("model", Kind::Service, serve),
            ("first", Kind::Step, "until [ -e $SITE/beside ]; do sleep 0.1; done; exit 7"),
            ("beside", Kind::With, beside),
        ],
    );
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "saved\nstopped\n");
    // First the other step by its number, then all that is left: the service.
    let calls = node.read("scancel.calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("--signal=TERM 42."), "{calls:?}");
    assert_eq!(calls[1..], ["--signal=TERM 42"]);
}

#[test]
fn a_proxy_is_ended_after_the_steps_and_before_the_services_that_it_needs() {
    let node = Node::new();
    let serve = |name: &str| {
        format!(
            "trap 'sleep 1; echo {name} stopped; exit 0' TERM; touch $SITE/{name}; while :; do sleep 0.1; done"
        )
    };
    let (model, front) = (serve("model"), serve("front"));
    let score = "until [ -e $SITE/model ] && [ -e $SITE/front ]; do sleep 0.1; done; echo scored";
    let table = table(
        &node,
        &[("model", Kind::Service, &model), ("front", Kind::Proxy, &front), ("score", Kind::Step, score)],
    );
    let output = node.run(&table, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "scored\nfront stopped\nmodel stopped\n");
}

#[test]
fn a_component_has_a_time_limit_of_its_own() {
    let node = Node::new();
    let mut script = table(&node, &[("slow", Kind::Step, "exec sleep 600"), ("last", Kind::Step, "true")]);
    script.components[0].timeout = slurm::RunTime::from_seconds(1);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(115), "{}", stderr(&output));
    assert!(stderr(&output).contains("slow has reached its time limit of 1 s"), "{}", stderr(&output));
    assert_eq!(record(&node)[0], "step slow");
}

#[test]
fn the_log_of_a_program_that_is_killed_has_its_own_words_alone() {
    let node = Node::new();
    // In a job of one task the program takes the place of the shell; here bash waits for it.
    let mut script = on_nodes(node.script(&["bash", "-c", "echo loading >&2; kill -KILL $$"]), 2);
    script.components[0].name = "model".parse().unwrap();
    script.components[0].log = Log::Own;
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(137), "{}", stderr(&output));
    assert_eq!(node.read("logs/job-1-42/model/0.err"), "loading\n");
}
