//! A job's own variables: the program gets them as they were given, and nothing before it sees them.

use std::{
    collections::BTreeMap,
    process::{Command, Output},
};

use remote::{
    BatchScript, Component, Container, Kind, Log, Nodes, OnWarning, Place, Value,
    script::{BEGIN_MARK, is_of_bash, is_of_hooks},
};
use slurm::EnvKey;
use test_case::test_case;

use crate::node::{Node, component, on_nodes, stderr};

/// What has a meaning for a shell, a line-based file, Slurm, Pyxis or Enroot.
const VARS: [(&str, &str); 12] = [
    ("DOTENV", "A=1\nPATH=/nowhere\n"),
    ("TLS_KEY", "-----BEGIN PRIVATE KEY-----\nMIIE+/=\n-----END PRIVATE KEY-----\n"),
    ("QUOTES", "it's \"$HOME\" `id` \\ \t\u{1b}\u{7f} !é%s"),
    ("EMPTY", ""),
    ("HOME", "/nowhere/home"),
    ("TMPDIR", "/nowhere/tmp"),
    ("XDG_CONFIG_HOME", "/nowhere/config"),
    ("ENROOT_TEMP_PATH", "/nowhere/enroot"),
    ("https_proxy", "http://nowhere.example:1"),
    ("LANG", "C"),
    ("LC_ALL", "C.UTF-8"),
    ("IFS", "/"),
];

/// A script of every kind of job. All run `argv`.
fn kinds(node: &Node, argv: &[&str]) -> Vec<BatchScript> {
    let hosts = |nodes| on_nodes(node.script(argv), nodes);
    let container =
        Container { image: "/a.sqsh".to_owned(), mounts: vec![], hook_env: BTreeMap::new(), home: None };
    let inside = |nodes| {
        let mut script = hosts(nodes);
        script.components[0].place = Place::Pyxis(container.clone());
        script
    };
    let role = |name: &str, first: u32, kind| Component {
        name: name.parse().unwrap(),
        kind,
        nodes: Nodes { first, count: 1 },
        place: Place::Pyxis(container.clone()),
        log: Log::Own,
        variables: vec![("ROLE".parse().unwrap(), Value::Text(name.to_owned()))],
        ..component(argv)
    };
    let roles = vec![
        role("controller", 0, Kind::Step),
        role("policy", 0, Kind::With),
        role("rollout", 1, Kind::With),
    ];
    vec![hosts(1), hosts(2), inside(1), inside(2), BatchScript { components: roles, ..inside(2) }]
}

/// What the last component has written.
fn written(node: &Node, script: &BatchScript, output: &Output) -> String {
    match script.components.len() {
        1 => String::from_utf8(output.stdout.clone()).unwrap(),
        _ => node.read("logs/job-1-42/rollout/0.out"),
    }
}

/// Lines `NAME=value`, each ended by a NUL.
fn pairs(text: &str) -> BTreeMap<&str, &str> {
    text.split('\0').filter_map(|line| line.split_once('=')).collect()
}

/// How many kinds of jobs there are.
const KINDS: usize = 5;

#[test]
fn every_value_reaches_every_kind_of_program_exactly() {
    for kind in 0..KINDS {
        let node = Node::new();
        let script = kinds(&node, &["/usr/bin/env", "-0"]).swap_remove(kind);
        node.give(&VARS);
        let output = node.run(&script, 42, 0);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let out = written(&node, &script, &output);
        let seen = pairs(&out);
        for (key, value) in VARS {
            assert_eq!(seen.get(key), Some(&value), "{key} in {:?}", script.components);
        }
        assert_eq!(seen["SLURM_JOB_ID"], "42");
    }
}

#[test]
fn neither_the_script_nor_srun_has_a_variable_of_the_job() {
    for kind in 0..KINDS {
        let node = Node::new();
        let script = kinds(&node, &["true"]).swap_remove(kind);
        node.give(&VARS);
        let output = node.run(&script, 42, 0);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let (env, args, text) = (node.read("srun.env"), node.read("srun.args"), script.render().unwrap());
        for (key, value) in VARS.into_iter().filter(|(_, value)| value.len() > 7) {
            for (place, seen) in [("environment", &env), ("words", &args), ("script", &text)] {
                assert!(!seen.contains(value), "{key} in the {place}: {:?}", script.components);
            }
        }
    }
}

#[test]
fn enroots_hooks_see_the_variables_of_devices_and_the_program_does_too() {
    let vars = [
        ("NVIDIA_DRIVER_CAPABILITIES", "all"),
        ("NVIDIA_REQUIRE_CUDA", "cuda>=12.8 brand='a $b'"),
        ("NVIDIA_VISIBLE_DEVICES", ""),
        ("MELLANOX_VISIBLE_DEVICES", "0,1"),
    ];
    for kind in 2..KINDS {
        let node = Node::new();
        let mut script = kinds(&node, &["/usr/bin/env", "-0"]).swap_remove(kind);
        for component in &mut script.components {
            let Place::Pyxis(container) = &mut component.place else { unreachable!() };
            container.hook_env = vars.map(|(key, value)| (key.parse().unwrap(), value.to_owned())).into();
        }
        node.give(&vars);
        let output = node.run(&script, 42, 0);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let (out, steps) = (written(&node, &script, &output), script.components.len());
        let (env, args) = (node.read("srun.env"), node.read("srun.args"));
        let listed: Vec<Vec<&str>> = args
            .split('\0')
            .filter_map(|word| word.strip_prefix("--container-env="))
            .map(|names| names.split(',').collect())
            .collect();
        assert_eq!(listed.len(), steps, "{args}");
        for (key, value) in vars {
            let pair = format!("{key}={value}");
            assert_eq!(env.split('\0').filter(|line| *line == pair).count(), steps, "{pair} of srun");
            assert_eq!(pairs(&out).get(key), Some(&value), "{pair} of the program");
            assert!(listed.iter().all(|names| names.contains(&key)), "{key} in {listed:?}");
        }
    }
}

#[test_case("NVIDIA_DRIVER_CAPABILITIES", "all", true ; "the driver")]
#[test_case("NVIDIA_REQUIRE_CUDA", "cuda>=12.8 'a' $b", true ; "any printable text")]
#[test_case("MELLANOX_VISIBLE_DEVICES", "all", true ; "an InfiniBand card")]
#[test_case("NVIDIA_VISIBLE_DEVICES", "all\nPATH=/nowhere", false ; "two lines")]
#[test_case("NVIDIA_VISIBLE_DEVICES", "all\r", false ; "a control character")]
#[test_case("NVIDIA", "all", false ; "another name")]
#[test_case("MY_NVIDIA_VISIBLE_DEVICES", "all", false ; "a longer name")]
#[test_case("ENROOT_TEMP_PATH", "/tmp", false ; "a setting of Enroot")]
#[test_case("HOME", "/tmp", false ; "what Enroot follows")]
fn only_plain_variables_of_devices_are_for_enroots_hooks(key: &str, value: &str, expected: bool) {
    assert_eq!(is_of_hooks(&key.parse().unwrap(), value), expected);
}

#[test]
fn what_the_script_says_about_the_nodes_overrides_the_job() {
    let show = ["bash", "-c", "echo $WORLD_SIZE $MASTER_PORT $NODE_RANK $ROLE $RANK"];
    let vars =
        [("WORLD_SIZE", "7"), ("MASTER_PORT", "7"), ("NODE_RANK", "7"), ("ROLE", "boss"), ("RANK", "7")];
    for kind in 2..KINDS {
        let node = Node::new();
        let mut script = kinds(&node, &show).swap_remove(kind);
        for component in &mut script.components {
            component.lightning_safe = true;
        }
        node.give(&vars);
        let output = node.run(&script, 42, 0);
        let expected = match (script.components.len(), script.directives.nodes) {
            (1, 1) => "7 7 7 boss 7\n",
            (1, _) => "2 29500 1 boss 7\n",
            _ => "1 29502 1 rollout 7\n",
        };
        assert_eq!(written(&node, &script, &output), expected, "{:?}", script.components);
    }
}

#[test]
fn every_name_that_is_not_bashs_own_can_be_given() {
    let node = Node::new();
    let script = node.script(&["/usr/bin/env", "-0"]);
    let listed = Command::new("bash").args(["-c", "compgen -v; compgen -e"]).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let others =
        ["BASH_COMPAT", "BASH_XTRACEFD", "CHILD_MAX", "FUNCNEST", "GLOBIGNORE", "POSIXLY_CORRECT", "TMOUT"];
    // The script adds to PATH, and these are refused for other reasons.
    let elsewhere = |name: &&str| !["PATH", "BASH_ENV"].contains(name) && !name.starts_with("SLURM_");
    let names = listed.lines().chain(others).filter(elsewhere);
    let names: Vec<&str> = names.filter(|name| !is_of_bash(&name.parse::<EnvKey>().unwrap())).collect();
    assert!(names.len() > 20, "{names:?}");
    let vars: Vec<(&str, &str)> = names.iter().map(|name| (*name, "a value")).collect();
    node.give(&vars);
    let output = node.run(&script, 42, 0);
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    let seen = pairs(&out);
    for name in names {
        assert_eq!(seen.get(name), Some(&"a value"), "{name}: {}", stderr(&output));
    }
}

#[test_case(1, OnWarning::Ignore ; "of a task")]
#[test_case(2, OnWarning::Ignore ; "of two tasks")]
#[test_case(1, OnWarning::Default ; "of a command")]
#[test_case(2, OnWarning::Default ; "of a command on two nodes")]
fn a_marker_that_cannot_be_written_ends_no_program_in_posix_mode(nodes: u32, on_warning: OnWarning) {
    let node = Node::new();
    let own_mark = if on_warning == OnWarning::Default { BEGIN_MARK } else { ":" };
    let script = node.script(&["bash", "-c", &format!("{own_mark}; echo begun")]);
    let mut script = on_nodes(script, nodes);
    script.components[0].on_warning = on_warning;
    for marker in ["begun.main.0", "begun.main.1"] {
        // A redirection to a directory fails for every user.
        std::fs::create_dir(node.file(&format!("state/{marker}"))).unwrap();
    }
    node.give(&[("POSIXLY_CORRECT", "1")]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "begun\n");
}

#[test]
fn a_path_of_the_job_holds_for_its_program_alone() {
    let node = Node::new();
    let script = node.script(&["/bin/bash", "-c", "echo $PATH"]);
    node.give(&[("PATH", "/nowhere")]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = format!("{}/bin:/nowhere\n", node.path("state"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn an_environment_file_that_is_not_there_is_reported() {
    for nodes in [1, 2] {
        let node = Node::new();
        let script = on_nodes(node.script(&["touch", node.path("touched").as_str()]), nodes);
        std::fs::remove_file(node.file("env")).unwrap();
        // srun returns the highest code: of several tasks, that of one that it has killed.
        std::fs::write(node.file("highest"), if nodes > 1 { "143" } else { "121" }).unwrap();
        let output = node.run(&script, 42, 0);
        assert_eq!(output.status.code(), Some(121), "{}", stderr(&output));
        assert!(stderr(&output).contains(node.path("env").as_str()), "{}", stderr(&output));
        assert_eq!(node.words("state/exit")[2], "121");
        assert!(!node.has("touched"));
    }
}

#[test]
fn a_job_cannot_redirect_the_marks_by_its_environment() {
    let node = Node::new();
    let mut script = node.script(&["bash", "-c", "exit 3"]);
    script.components[0].on_warning = OnWarning::Ignore;
    node.give(&[("_tao_state", "/nowhere"), ("_tao_id", "9"), ("_tao_task", "exit 0")]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "3"]);
    assert!(node.has("state/begun.main.0"));
}
