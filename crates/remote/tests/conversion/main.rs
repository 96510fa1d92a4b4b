//! Runs rendered conversions under a real bash, with a fake enroot.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

#[path = "../fixtures/plain.rs"]
mod plain;

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::Arc,
};

use remote::{BatchScript, Component, Directives, launcher::Plain, script::conversion};
use slurm::RemotePath;

use plain::{plain_directives, plain_script};

/// Runs what stands after `--`.
const SRUN: &str = "#!/bin/bash\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

/// Writes what $SITE/image holds, if it may, and notes what it was called with and where its temporary files go.
const ENROOT: &str = r#"#!/bin/bash
printf '%s\n' "$@" >"$SITE/enroot.args"
[ "$1 $2" = 'import -o' ] && [ "$4" = -- ] && [ -d "$ENROOT_TEMP_PATH" ] || exit 99
echo "$ENROOT_TEMP_PATH" >"$SITE/enroot.temp"
touch "$ENROOT_TEMP_PATH/layer"
[ ! -e "$3" ] || { echo "[ERROR] File already exists: $3" >&2; exit 1; }
cp "$SITE/image" "$3"
ls "${3%/*}" >"$SITE/seen"
exit "$(cat "$SITE/enroot.rc" 2>/dev/null || echo 0)"
"#;

struct Node {
    dir: tempfile::TempDir,
}

impl Node {
    /// A node whose enroot makes this file of every image.
    fn new(image: &[u8]) -> Self {
        let node = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["bin", "state"] {
            fs::create_dir(node.file(name)).unwrap();
        }
        for (name, text) in [("bin/enroot", ENROOT), ("bin/srun", SRUN)] {
            fs::write(node.file(name), text).unwrap();
            fs::set_permissions(node.file(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(node.file("state/command.sh"), program(&node)).unwrap();
        fs::write(node.file("image"), image).unwrap();
        for name in ["submit.1", "env"] {
            fs::write(node.file("state").join(name), "").unwrap();
        }
        node
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn path(&self, name: &str) -> RemotePath {
        self.file(name).to_str().unwrap().parse().unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.file(dir)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn run(&self, job: u32, restart: u32) -> Output {
        fs::write(self.file("script.sh"), script(self).render().unwrap()).unwrap();
        Command::new("bash")
            .arg(self.file("script.sh"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.file("bin").display()))
            .env("SITE", self.dir.path())
            .env("SLURM_JOB_ID", job.to_string())
            .env("SLURM_RESTART_COUNT", restart.to_string())
            .env("SLURMD_NODENAME", "node01")
            .output()
            .unwrap()
    }
}

fn whole() -> Vec<u8> {
    let mut bytes = vec![7; 96];
    bytes[..4].copy_from_slice(b"hsqs");
    bytes[40..48].copy_from_slice(&96_u64.to_le_bytes());
    bytes
}

fn program(node: &Node) -> String {
    conversion("docker://host#a/b:1", &node.path("cache dir/a'b.sqsh"), &node.path("scratch")).unwrap()
}

fn script(node: &Node) -> BatchScript {
    let program = node.path("state/command.sh");
    let argv = ["bash", "-euo", "pipefail", program.as_str()].map(str::to_owned).to_vec();
    let directives =
        Directives { partitions: Some("cpu".parse().unwrap()), ..plain_directives("tao-job-1", 30) };
    let component = Component::step("convert".parse().unwrap(), 1, Arc::new(Plain), argv);
    plain_script(directives, node.path("state"), component)
}

#[test]
fn an_image_gets_its_name_when_it_is_whole_and_nothing_else_stays() {
    let node = Node::new(&whole());
    let done = node.run(7, 0);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(node.names_in("cache dir"), ["a'b.sqsh"]);
    assert_eq!(node.read("seen"), "a'b.sqsh.partial.7\n", "the name came last");
    assert!(node.read("enroot.args").ends_with("\n--\ndocker://host#a/b:1\n"));
    assert_eq!(node.names_in("scratch"), Vec::<String>::new());
    assert!(node.read("enroot.temp").starts_with(node.path("scratch").as_str()));
    assert!(node.read("state/exit").starts_with("7 0 0 "));
}

#[test]
fn enroots_failure_is_the_jobs_and_leaves_nothing() {
    let node = Node::new(b"hsqs and no more");
    fs::write(node.file("enroot.rc"), "6").unwrap();
    assert_eq!(node.run(7, 0).status.code(), Some(6));
    assert_eq!(node.names_in("cache dir"), Vec::<String>::new());
    assert_eq!(node.names_in("scratch"), Vec::<String>::new());
    assert!(node.read("state/exit").starts_with("7 0 6 "));
}

#[test]
fn what_is_no_image_gets_no_name() {
    let node = Node::new(b"<html>Please log in</html>");
    let done = node.run(7, 0);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("not a complete SquashFS image"));
    assert_eq!(node.names_in("cache dir"), Vec::<String>::new());
}

#[test]
fn a_file_that_is_no_image_is_replaced_and_a_whole_one_is_left_alone() {
    let node = Node::new(&whole());
    fs::create_dir(node.file("cache dir")).unwrap();
    fs::write(node.file("cache dir/a'b.sqsh"), "hsqs").unwrap();
    assert!(node.run(7, 0).status.success());
    let made = fs::read(node.file("cache dir/a'b.sqsh")).unwrap();
    assert_eq!(made, whole());

    fs::remove_file(node.file("enroot.args")).unwrap();
    fs::remove_file(node.file("state/run")).unwrap();
    assert!(node.run(8, 0).status.success());
    assert!(!node.file("enroot.args").exists(), "enroot was not asked");
}

#[test]
fn a_requeued_conversion_begins_again() {
    let node = Node::new(&whole());
    fs::create_dir(node.file("cache dir")).unwrap();
    fs::write(node.file("cache dir/a'b.sqsh.partial.7"), "what a dead node left").unwrap();
    let done = node.run(7, 1);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(node.names_in("cache dir"), ["a'b.sqsh"]);
}

#[test]
fn a_second_copy_touches_nothing() {
    let node = Node::new(&whole());
    std::os::unix::fs::symlink("6", node.file("state/run")).unwrap();
    assert_eq!(node.run(7, 0).status.code(), Some(120));
    assert!(!node.file("enroot.args").exists());
}

#[test]
fn a_node_without_enroot_is_told_as_it_is() {
    let node = Node::new(&whole());
    fs::remove_file(node.file("bin/enroot")).unwrap();
    let done = node.run(7, 0);
    assert_eq!(done.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&done.stderr).contains("enroot: command not found"));
}

#[test]
fn shellcheck_accepts_the_program() {
    // SC2317: a function that only a trap calls.
    let mut check = Command::new("shellcheck");
    check.args(["--shell=bash", "--exclude=SC2317", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut check = check.spawn().expect("shellcheck is installed: apt-get install shellcheck");
    check.stdin.take().unwrap().write_all(program(&Node::new(b"")).as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}
