//! What is no plain file, in the place of a file that a program of ours reads or writes: a job can write to its directories.

use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use remote::{
    Checkpoints, How, Locate, LogAnswer, LogFrom, LogQuestion, Purge, ReadLogs, RemoteCommand as _, Subject,
    SubmitAnswer,
};
use test_case::test_matrix;
use uuid::Uuid;

use crate::{
    install_credentials,
    locate::sought,
    site::{Site, id},
    submit_batch::{entry, one, submitted},
};

/// More than a busy machine needs. Nothing else ends a wait: a patient site has no time limits.
const SOON: Duration = Duration::from_mins(3);

#[derive(Clone, Copy, Debug)]
enum Odd {
    Pipe,
    Device,
    Directory,
    Hole,
}
use Odd::{Device, Directory, Hole, Pipe};

#[expect(clippy::disallowed_methods, reason = "who waits at a pipe is freed after a real time")]
fn put(site: &Site, odd: Odd, name: &str) {
    let path = site.file(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match odd {
        Pipe => {
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            // Frees a program that waits at the pipe, so that the test fails and does not hang.
            thread::spawn(move || {
                thread::sleep(SOON);
                let _ = fs::OpenOptions::new().read(true).write(true).open(path);
            });
        }
        Device => symlink("/dev/zero", path).unwrap(),
        Directory => fs::create_dir(path).unwrap(),
        Hole => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
    }
}

fn soon<T>(what: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = what();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    done
}

#[test_matrix([Pipe, Device, Directory])]
fn it_is_no_log(odd: Odd) {
    let site = Site::patient();
    put(&site, odd, "a/main.out");
    put(&site, odd, "a/0.out");
    site.write("b/main.out", "text\n");
    let question = |names: &[&str], from| LogQuestion::Part {
        subject: Subject::Cluster,
        paths: names.iter().map(|name| site.path(name)).collect(),
        from,
        max_bytes: 100,
    };
    let questions = [LogFrom::TailLines(5), LogFrom::Offset(0)].into_iter().flat_map(|from| {
        [&["a/main.out"][..], &["a/main.out", "b/main.out"]].map(|names| question(names, from))
    });
    let questions = questions.collect();
    let answers = soon(|| site.run(&ReadLogs { questions }));
    for pair in answers.chunks(2) {
        assert_eq!(pair[0], LogAnswer::Missing);
        assert!(matches!(&pair[1], LogAnswer::Chunk(chunk) if chunk.bytes == b"text\n"), "{pair:?}");
    }
}

#[test]
fn a_log_that_grows_while_it_is_read_gives_the_bytes_that_were_asked_for() {
    let site = Site::patient();
    site.write("log", "one\ntwo\n");
    // Endlessly, as far as the reader can see.
    site.program(
        "tail",
        "if (($(stat -c %s \"$SITE/log\") < 10000000)); then head -c 1000000 /dev/zero >>\"$SITE/log\"; fi\nexec /usr/bin/tail \"$@\"",
    );
    for (from, expected) in [(LogFrom::Offset(4), "two\n"), (LogFrom::TailLines(9), "one\ntwo\n")] {
        site.write("log", "one\ntwo\n");
        let part = LogQuestion::Part {
            subject: Subject::Cluster,
            paths: vec![site.path("log")],
            from,
            max_bytes: 100,
        };
        let answer = soon(|| site.run(&ReadLogs { questions: vec![part] })).remove(0);
        let LogAnswer::Chunk(chunk) = answer else { panic!("{answer:?}") };
        assert_eq!((chunk.size, String::from_utf8(chunk.bytes).unwrap().as_str()), (8, expected));
    }
}

#[test_matrix([Pipe, Device, Directory, Hole])]
fn it_is_no_saved_id_and_the_job_is_found_in_the_queue(odd: Odd) {
    let site = Site::patient();
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    site.remove("state/a/slurm_id");
    put(&site, odd, "state/a/slurm_id");
    assert_eq!(soon(|| one(&site, entry(&site, "a"))), submitted(101, How::Adopted));
    // Where it can be, the id is saved for the next time.
    let next = if matches!(odd, Directory) { How::Adopted } else { How::Replay };
    assert_eq!(soon(|| one(&site, entry(&site, "a"))), submitted(101, next));
    assert_eq!(site.calls("sbatch"), 1);
}

#[test_matrix([Pipe, Device, Directory, Hole])]
fn a_lookup_of_a_job_takes_it_for_no_id(odd: Odd) {
    let site = Site::patient();
    put(&site, odd, "base/state/a/slurm_id");
    site.write("base/state/b/slurm_id", "77\n");
    let jobs = vec![sought(&site, "a"), sought(&site, "b")];
    let found = soon(|| site.run(&Locate { jobs, since_unix: 1_700_000_000 })).located;
    assert_eq!((found[0].id_file, found[1].id_file), (None, Some(id(77))));
}

#[test_matrix([Pipe, Device, Directory, Hole], ["env/a", "sbatch/a.sh"])]
fn a_file_of_a_job_replaces_it_or_says_why_not(odd: Odd, name: &str) {
    let site = Site::patient();
    put(&site, odd, name);
    let answer = soon(|| one(&site, entry(&site, "a")));
    if matches!(odd, Directory) {
        let SubmitAnswer::StageFailed(failure) = answer else { panic!("{answer:?}") };
        assert!(failure.to_string().contains(name), "{failure}");
    } else {
        assert_eq!(answer, submitted(101, How::New));
        assert!(fs::symlink_metadata(site.file(name)).unwrap().is_file());
        assert!(fs::read(site.file(name)).unwrap().len() < 100);
    }
}

#[test_matrix([Pipe, Device, Directory, Hole])]
fn it_is_no_mark_of_results_of_ours(odd: Odd) {
    let site = Site::patient();
    let job = Uuid::from_u128(7);
    site.write(&format!("base/results/{job}/file"), "precious");
    put(&site, odd, &format!("base/results/{job}/.tao-slurm"));
    let purged = soon(|| site.run(&Purge { jobs: vec![(site.path("base"), job)] }));
    assert_eq!((purged.left.len(), purged.others.len()), (0, 1));
    assert_eq!(site.read(&format!("base/results/{job}/file")), "precious");
}

#[test_matrix([Pipe, Device, Directory])]
fn it_is_no_checkpoint(odd: Odd) {
    let site = Site::patient();
    put(&site, odd, "r/train/model_epoch_2.pth");
    let found = soon(|| site.run(&Checkpoints { jobs: vec![(Uuid::nil(), site.path("r"))] }));
    assert_eq!(found, [None]);
}

#[test_matrix([Pipe, Device, Directory, Hole])]
fn credentials_of_such_a_kind_are_left_alone(odd: Odd) {
    let site = Site::patient();
    put(&site, odd, "home/.config/enroot/.credentials");
    let command = install_credentials::entry("nvcr.io", "u", "hunter2");
    let home = site.file("home");
    let raw = soon(|| site.raw_with(&command, &[("HOME", home.to_str().unwrap())]));
    let error = command.parse(&raw).unwrap_err().to_string();
    assert!(error.contains("by hand") && !error.contains("hunter2"), "{error}");
}
