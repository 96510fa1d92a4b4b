use std::fs;

use remote::{InstallCredentials, NetrcWord, RemoteCommand};
use slurm::FailureClass;

use crate::site::{Site, mode};

const FILE: &str = ".config/enroot/.credentials";

pub(crate) fn entry(machine: &str, login: &str, password: &str) -> InstallCredentials {
    let word = |text: &str| text.parse::<NetrcWord>().unwrap();
    InstallCredentials::new(word(machine), word(login), password).unwrap()
}

fn install(site: &Site, command: &InstallCredentials) {
    let home = site.file("home");
    fs::create_dir_all(&home).unwrap();
    let raw = site.raw_with(command, &[("HOME", home.to_str().unwrap())]);
    assert_eq!(String::from_utf8_lossy(&raw.stderr), "");
    command.parse(&raw).unwrap();
}

/// What the file is after an entry was put into what it was.
fn merged(before: &str, machine: &str, login: &str, password: &str) -> String {
    let site = Site::new();
    site.write(&format!("home/{FILE}"), before);
    install(&site, &entry(machine, login, password));
    site.read(&format!("home/{FILE}"))
}

#[test]
fn a_file_is_made_for_its_owner_alone() {
    let site = Site::new();
    install(&site, &entry("nvcr.io", "$oauthtoken", "hunter2"));
    assert_eq!(site.read(&format!("home/{FILE}")), "machine nvcr.io login $oauthtoken password hunter2\n");
    assert_eq!(mode(&site.file(&format!("home/{FILE}"))), 0o600);
    assert_eq!(mode(&site.file("home/.config/enroot")), 0o700);
    let left: Vec<_> = fs::read_dir(site.file("home/.config/enroot")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_file_that_was_open_to_others_is_closed() {
    let site = Site::new();
    site.write(&format!("home/{FILE}"), "machine a login b password c\n");
    install(&site, &entry("nvcr.io", "u", "p"));
    assert_eq!(mode(&site.file(&format!("home/{FILE}"))), 0o600);
    assert_eq!(mode(&site.file("home/.config/enroot")), 0o700);
}

#[test]
fn the_entry_of_the_same_machine_is_replaced_in_its_place() {
    let before = "# mine\nmachine a login b password c\nmachine nvcr.io login u password old\n\nmachine z login y password x";
    assert_eq!(
        merged(before, "nvcr.io", "u", "new"),
        "# mine\nmachine a login b password c\nmachine nvcr.io login u password new\n\nmachine z login y password x"
    );
    assert_eq!(merged("machine m login l password p", "m", "l", "q"), "machine m login l password q\n");
}

/// enroot uses the first entry of a machine, so the new one would have no effect beside it.
#[test]
fn another_login_replaces_every_entry_of_its_machine() {
    let before =
        "machine m login old password p\nmachine n login l password q\nmachine m login older password r\n";
    let after = "machine m login new password s\nmachine n login l password q\n";
    assert_eq!(merged(before, "m", "new", "s"), after);
}

#[test]
fn every_other_byte_stays() {
    let before = "machine nvcr.com login other password \"a b\\\" machine nvcr.io login u\"\r\n\tmachine\tnvcr.io.evil login u password k\n\
                  default login d password e\n# machine nvcr.io login u password commented\n\u{e9}";
    assert_eq!(
        merged(before, "nvcr.io", "u", "new"),
        format!("{before}\nmachine nvcr.io login u password new\n")
    );
}

#[test]
fn an_entry_over_several_lines_and_one_written_twice_are_replaced_whole() {
    let before = "machine nvcr.io\n  login u\n  password \"old one\"  \nmachine k login l password m\nmachine nvcr.io password older login u\n";
    assert_eq!(
        merged(before, "nvcr.io", "u", "new"),
        "machine nvcr.io login u password new\nmachine k login l password m\n"
    );
}

#[test]
fn installing_again_changes_nothing() {
    let site = Site::new();
    for _ in 0..2 {
        install(&site, &entry("nvcr.io", "u", "p"));
    }
    assert_eq!(site.read(&format!("home/{FILE}")), "machine nvcr.io login u password p\n");
}

#[test]
fn a_link_stays_a_link() {
    let site = Site::new();
    site.write("dotfiles/credentials", "machine a login b password c\n");
    site.link(site.file("dotfiles/credentials").to_str().unwrap(), &format!("home/{FILE}"));
    install(&site, &entry("m", "l", "p"));
    assert!(site.file(&format!("home/{FILE}")).is_symlink());
    assert_eq!(
        site.read("dotfiles/credentials"),
        "machine a login b password c\nmachine m login l password p\n"
    );
}

#[test]
fn a_question_that_was_cut_changes_nothing() {
    let site = Site::new();
    let command = entry("m", "l", "secret");
    for length in 0..command.render().stdin.len() {
        let raw = site.raw_cut(&command, length);
        assert_eq!(command.parse(&raw).unwrap_err().class(), FailureClass::NotDone, "{length}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_said_without_the_password() {
    let site = Site::new();
    site.write("home/.config", "a file");
    let command = entry("m", "l", "hunter2");
    let raw = site.raw_with(&command, &[("HOME", site.file("home").to_str().unwrap())]);
    let error = command.parse(&raw).unwrap_err().to_string();
    assert!(error.contains(".config") && !error.contains("hunter2"), "{error}");
}

#[test]
fn no_program_that_is_started_sees_the_password_in_its_words_or_environment() {
    let site = Site::new();
    // Every program of the outside that takes part, each noting what it was started with.
    for program in
        ["awk", "cat", "chmod", "cp", "grep", "mkdir", "mv", "stat", "tr", "head", "find", "base64"]
    {
        let spy =
            format!("{{ printf '%s\\n' \"$0 $*\"; env; }} >>\"$SITE/seen\"\nexec /usr/bin/{program} \"$@\"");
        site.program(program, &spy);
    }
    install(&site, &entry("nvcr.io", "u", "hunter2"));
    let seen = site.read("seen");
    assert!(seen.contains("/awk") && seen.contains("/mv"), "{seen}");
    assert!(!seen.contains("hunter2"), "{seen}");
    assert!(!format!("{:?}", entry("nvcr.io", "u", "hunter2")).contains("hunter2"));
}
