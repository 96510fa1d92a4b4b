//! The sandbox's stand-ins of Pyxis 0.24.0 and Enroot 4.1.2 against a table of what the real ones do.
//!
//! The tables run as one script each: of `enroot import` on a login host, and of `srun` in one allocation.

mod imports;
mod steps;

use std::{
    collections::HashMap,
    fmt::Write,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use crate::cluster::Sandbox;

/// A command and what must be seen of it.
struct Case {
    /// Unique in its table.
    name: &'static str,
    /// A shell script. `$T` is a directory of the test, `$HOST` a registry of the test.
    script: &'static str,
    rows: &'static [Row],
}

/// One behaviour.
struct Row {
    behaviour: &'static str,
    /// Where the fact comes from: a source file of Pyxis or Enroot, or the output of the real ones on Slurm 22.05.
    fact: &'static str,
    /// Parts of the output, in this order.
    seen: &'static [&'static str],
    unseen: &'static [&'static str],
}

const fn shows(behaviour: &'static str, fact: &'static str, seen: &'static [&'static str]) -> Row {
    Row { behaviour, fact, seen, unseen: &[] }
}

const fn hides(
    behaviour: &'static str,
    fact: &'static str,
    seen: &'static [&'static str],
    unseen: &'static [&'static str],
) -> Row {
    Row { behaviour, fact, seen, unseen }
}

/// Registries and files of a test.
struct Place {
    sandbox: Sandbox,
    registries: PathBuf,
    host: String,
    dir: String,
}

impl Place {
    fn new() -> Self {
        let sandbox = Sandbox::find();
        sandbox.take_nodes_back();
        let host = format!("t{}.sandbox", std::process::id());
        let dir = format!("{}/standins-{host}", sandbox.var("SLURM_BASE_RESULTS_DIR"));
        sandbox.login(&format!("mkdir -p '{dir}'"));
        let registries = sandbox.file("registry");
        let place = Self { sandbox, registries, host, dir };
        place.push("plain", &[]);
        place
    }

    /// A copy of the test image with other files, in the registry `$HOST`.
    fn push(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let tree = self.registries.join(&self.host).join(name).join("1");
        fs::create_dir_all(tree.parent().unwrap()).unwrap();
        let image = self.registries.join("registry.sandbox/nvidia/tao/tao-toolkit/6.26.3-pyt");
        assert!(Command::new("cp").arg("-a").arg(image).arg(&tree).status().unwrap().success());
        for (file, text) in files {
            let file = tree.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        }
        tree
    }

    /// Another registry, `$HOST` with this before it, which has the same images and asks for a login.
    fn guard(&self, name: &str, login: &str) {
        let host = format!("{name}-{}", self.host);
        let ported = self.registries.join(format!("{host}:5000"));
        // Relative, because the cluster sees the registry in another place.
        symlink(&host, ported).unwrap();
        let host = self.registries.join(host);
        fs::create_dir_all(&host).unwrap();
        symlink(format!("../{}/plain", self.host), host.join("plain")).unwrap();
        fs::write(host.join(".auth"), format!("{login}\n")).unwrap();
    }

    /// An image whose import fails.
    fn fail(&self, name: &str, how: &str) {
        let tree = self.registries.join(&self.host).join(name).join("1");
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::write(tree.with_extension("fails"), format!("{how}\n")).unwrap();
    }

    /// Runs the cases after each other, and returns the output of each, which ends in `rc=CODE`.
    fn run(&self, shell: &str, cases: &[Case]) -> HashMap<&'static str, String> {
        // A step need not wait until the resources of the one before are free, which srun may notice a minute later.
        let mut script = format!("export T='{}' HOST='{}' SLURM_OVERLAP=1; cd \"$T\"\n", self.dir, self.host);
        for Case { name, script: one, .. } in cases {
            writeln!(script, "echo '=== {name}'\n(\n{one}\n) 2>&1 </dev/null; printf '\\nrc=%d\\n' $?")
                .unwrap();
        }
        let file = format!("{}/{}", self.dir, "script");
        fs::write(self.on_host(&file), script).unwrap();
        let said = self.sandbox.login(&format!("{shell} bash '{file}'"));
        let parts = said.split("=== ").skip(1).filter_map(|part| part.split_once('\n'));
        let found: HashMap<&str, &str> = parts.collect();
        cases
            .iter()
            .map(|case| (case.name, found.get(case.name).map_or_else(String::new, |text| (*text).to_owned())))
            .collect()
    }

    /// The path of a file of the shared file system outside the cluster.
    fn on_host(&self, file: &str) -> PathBuf {
        Path::new(self.sandbox.var("SANDBOX_LUSTRE")).join(file.strip_prefix("/lustre/").unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.registries).unwrap().filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().contains(&self.host) {
                // Of a link, only the link.
                let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
            }
        }
        let _ = self.sandbox.try_login("login1", &format!("chmod -R u+rwX '{0}'; rm -rf '{0}'", self.dir));
    }
}

/// Holds the output of each case against its rows, and reports all that differ.
fn check(cases: &[Case], said: &HashMap<&str, String>) {
    let mut wrong = String::new();
    for Case { name, rows, .. } in cases {
        let text = &said[name];
        for Row { behaviour, fact, seen, unseen } in *rows {
            let mut rest = text.as_str();
            let missing = seen.iter().find(|part| match rest.split_once(**part) {
                Some((_, after)) => {
                    rest = after;
                    false
                }
                None => true,
            });
            let excess = unseen.iter().find(|part| text.contains(**part));
            if missing.is_some() || excess.is_some() {
                writeln!(
                    wrong,
                    "{name}: {behaviour} ({fact})\n  missing: {missing:?}, in excess: {excess:?}\n{text}"
                )
                .unwrap();
            }
        }
    }
    assert_eq!(wrong, "", "the stand-ins differ");
}

#[test]
fn an_import_behaves_as_in_the_real_enroot() {
    let place = Place::new();
    imports::prepare(&place);
    check(imports::CASES, &place.run("", imports::CASES));
}

#[test]
fn a_step_behaves_as_with_the_real_pyxis() {
    let place = Place::new();
    steps::prepare(&place);
    check(steps::CASES, &place.run("salloc -Q -N1 -n2 -c1 --mem=2G -t 10", steps::CASES));
}

#[test]
fn the_tables_have_at_least_forty_behaviours() {
    let rows = imports::CASES.iter().chain(steps::CASES).flat_map(|case| case.rows);
    assert!(rows.count() >= 40);
}
