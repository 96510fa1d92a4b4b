use std::fs;

use remote::{BaseState, Preflight, PreflightAnswer, RemoteCommand};

use crate::site::Site;

pub(crate) fn question(deep: bool) -> Preflight {
    Preflight {
        deep,
        base_dir: "/nonexistent/base".parse().unwrap(),
        account: Some("team".parse().unwrap()),
        partitions: Some("polar,nosuch".parse().unwrap()),
        gpus: 1,
    }
}

/// A site whose commands say what those of 22.05 say.
fn site() -> Site {
    let site = Site::new();
    site.program(
        "sbatch",
        "printf '%s\\n' \"$*\" >>\"$SITE/trials\"\ncase \"$*\" in *nosuch*) echo 'sbatch: error: invalid partition specified: nosuch' >&2
         echo 'allocation failure: Invalid partition name specified' >&2; exit 1;; esac",
    );
    site.program(
        "scontrol",
        "case \"$*\" in ping) echo 'Slurmctld(primary) at ctl is UP';; *) echo 'ClusterName             = sandbox';; esac",
    );
    site.program("sinfo", "true");
    site.program("srun", "echo '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'");
    site.program("sacctmgr", "echo 'sandbox|tao_account|'; echo 'other|x|polar'; echo 'bad'");
    site.write(
        "home/.config/enroot/.credentials",
        "machine nvcr.io login $oauthtoken password hunter2\nmachine b login machine password c\n",
    );
    site
}

fn run(site: &Site, deep: bool, base: &str) -> PreflightAnswer {
    let command = Preflight { base_dir: site.path(base), ..question(deep) };
    let raw = site.raw_with(&command, &[("HOME", site.file("home").to_str().unwrap())]);
    assert_eq!(String::from_utf8_lossy(&raw.stderr), "");
    assert!(!String::from_utf8_lossy(&raw.stdout).contains("hunter2"));
    command.parse(&raw).unwrap()
}

#[test]
fn the_facts_of_a_cluster_that_works() {
    let site = site();
    fs::create_dir(site.file("base")).unwrap();
    let answer = run(&site, true, "base");
    assert_eq!(answer.missing_commands, Vec::<String>::new());
    assert_eq!(answer.base.state, BaseState::Writable);
    assert!(answer.base.space.is_some_and(|(free, all)| free > 0 && all >= free), "{:?}", answer.base);
    assert_eq!(fs::read_dir(site.file("base")).unwrap().count(), 0, "the trial's file is gone");
    let deep = answer.deep.unwrap();
    assert_eq!(deep.ping.unwrap().text, "Slurmctld(primary) at ctl is UP");
    assert_eq!(deep.cluster_name.as_deref(), Some("sandbox"));
    assert_eq!((deep.associations.len(), deep.associations[0].account.as_str()), (2, "tao_account"));
    assert!(deep.pyxis.unwrap().0);
    assert_eq!((deep.quota, deep.credentials_mode), (None, Some(0o644)));
    assert_eq!(deep.machines, ["b", "nvcr.io"]);
    assert_eq!((deep.trials[0].code, deep.trials[1].code), (0, 1));
    assert!(deep.trials[1].text.contains("Invalid partition name"), "{:?}", deep.trials[1]);
    let trials = site.read("trials");
    assert!(trials.contains("--account=team --gpus-per-node=1 --partition=polar"), "{trials}");
}

#[test]
fn a_look_that_is_not_deep_asks_no_controller() {
    let site = site();
    assert_eq!(run(&site, false, "home").deep, None);
    assert!(!site.exists("trials"));
}

#[test]
fn a_command_that_is_not_on_path_is_named() {
    let site = site();
    for name in ["sinfo", "sacct"] {
        site.remove(&format!("bin/{name}"));
    }
    // The machine of the test may have Slurm's own commands.
    let command = Preflight { base_dir: site.path("home"), ..question(false) };
    let bare = site.file("bare");
    fs::create_dir(&bare).unwrap();
    for name in [
        "bash", "mktemp", "base64", "tail", "head", "rm", "timeout", "stat", "df", "awk", "sed", "cut", "wc",
        "cat", "tar",
    ] {
        std::os::unix::fs::symlink(format!("/usr/bin/{name}"), bare.join(name)).unwrap();
    }
    let path = format!("{}:{}", site.file("bin").display(), bare.display());
    let raw = site.raw_with(&command, &[("PATH", &path)]);
    let answer = command.parse(&raw).unwrap();
    assert_eq!(
        (answer.missing_commands, answer.enroot),
        (vec!["sacct".to_owned(), "sinfo".to_owned()], false)
    );
}

#[test]
fn a_base_directory_is_told_apart_by_what_could_be_done_with_it() {
    let site = site();
    assert_eq!(run(&site, false, "not/yet").base.state, BaseState::Creatable);
    site.write("file", "");
    assert_eq!(run(&site, false, "file/below").base.state, BaseState::Uncreatable);
    let file = run(&site, false, "file").base;
    assert_eq!(file.state, BaseState::Uncreatable);
    assert!(file.said.contains("file"), "{}", file.said);
    site.program("mktemp", "case \"$*\" in *preflight*) echo 'mktemp: No space left on device' >&2; exit 1;; esac; exec /usr/bin/mktemp \"$@\"");
    let full = run(&site, false, "home").base;
    assert_eq!((full.state, full.said.as_str()), (BaseState::Unwritable, "mktemp: No space left on device"));
}

#[test]
fn commands_that_fail_are_facts_too() {
    let site = site();
    site.program("scontrol", "echo 'Slurmctld(primary) at ctl is DOWN'; exit 1");
    site.program("sacctmgr", "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1");
    site.program("srun", "exit 1");
    site.program("quota", "echo '     /dev/vda  1100* 1000 1200'; exit 1");
    let deep = run(&site, true, "home").deep.unwrap();
    assert_eq!(deep.ping.unwrap().code, 1);
    assert!(deep.accounting.unwrap().text.contains("not running a supported"));
    assert!(!deep.pyxis.unwrap().0);
    assert!(deep.quota.unwrap().text.contains("1100*"));
}
