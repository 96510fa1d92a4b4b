//! A login node of one's own: a directory with fakes of Slurm's commands, and the programs run under a real bash.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use remote::{AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Subject};
use slurm::RemotePath;
use uuid::Uuid;

const FAKES: &[(&str, &str)] = &[
    ("squeue", include_str!("fakes/squeue")),
    ("sacct", include_str!("fakes/sacct")),
    ("sbatch", include_str!("fakes/sbatch")),
    ("scancel", include_str!("fakes/scancel")),
];

/// Instead of the exit code of a program that a signal has ended.
const KILLED: i32 = -1;

/// A file that is open for writing cannot be run, and a process has the open files of all tests until it becomes the
/// program it was started for: no program is written while another is started.
static PROGRAMS: Mutex<()> = Mutex::new(());

/// Holds a file so that it cannot be opened.
pub(crate) struct Hung(Child);

impl Drop for Hung {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

pub(crate) struct Site {
    dir: tempfile::TempDir,
    /// What bash does before each program.
    first: &'static str,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let site = Self { dir, first: "" };
        fs::create_dir_all(site.file("bin")).unwrap();
        fs::create_dir_all(site.file("tmp")).unwrap();
        for (name, text) in FAKES {
            site.program(name, text);
        }
        for name in ["queue", "sbatch.calls", "squeue.calls", "sacct.calls", "scancel.calls", "sacct.rows"] {
            site.write(name, "");
        }
        for name in ["sbatch.err", "squeue.err", "sacct.err", "scancel.err"] {
            site.write(name, "");
        }
        site
    }

    /// A login node that gives each reader, and each program, the time it needs: how long that is depends on what else runs here.
    pub(crate) fn patient() -> Self {
        let site = Self::new();
        site.program("timeout", r#"exec "${@:4}""#);
        // Programs count time by this variable. Unset, it is one like any other.
        Self { first: "unset SECONDS; SECONDS=0\n", ..site }
    }

    /// Puts a program of bash before all others of its name.
    pub(crate) fn program(&self, name: &str, text: &str) {
        let path = self.file("bin").join(name);
        let _alone = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path as the commands know it.
    pub(crate) fn path(&self, name: &str) -> RemotePath {
        self.file(name).to_str().unwrap().parse().unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn append(&self, name: &str, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.file(name)).unwrap();
        file.write_all(bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.file(name)).unwrap();
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.file(name).symlink_metadata().is_ok()
    }

    pub(crate) fn calls(&self, program: &str) -> usize {
        self.read(&format!("{program}.calls")).lines().count()
    }

    /// Whoever opens the file from now on waits, as for a server that does not answer. Without a limit that would be for
    /// `/proc/sys/fs/lease-break-time`, 45 s.
    pub(crate) fn hang(&self, name: &str) -> Hung {
        // F_SETLEASE, F_WRLCK: fcntl(2).
        let text = "$SIG{IO} = 'IGNORE'; open F, '+<', $ARGV[0] or die; fcntl F, 1024, 1 or die $!; $| = 1;
                    print qq(held\n); <STDIN>";
        let mut perl = Command::new("perl");
        perl.args(["-e", text]).arg(self.file(name)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = perl.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n");
        Hung(child)
    }

    /// A process that reads for all jobs is given so many seconds.
    pub(crate) fn patience_of_reads(&self, seconds: u32) {
        let text = format!(
            "case $* in *' walk '*) shift 3; set -- -k 1 {seconds} \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\""
        );
        self.program("timeout", &text);
    }

    /// Whoever touches a path with this in it waits until it is killed: what a program then needs for its environment.
    /// Every wait of a program for another ends after three seconds.
    pub(crate) fn hang_all(&self, part: &str) -> [(&'static str, String); 2] {
        self.program("timeout", "shift 3\nexec /usr/bin/timeout -k 1 3 \"$@\"");
        let library = self.file("bin/hang.so").to_str().unwrap().to_owned();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/fakes/hang.c");
        let built =
            Command::new("cc").args(["-w", "-shared", "-fPIC", "-o", &library, source]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        [("LD_PRELOAD", library), ("HUNG", part.to_owned())]
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn raw<C: RemoteCommand>(&self, command: &C) -> RawOutput {
        self.raw_with(command, &[])
    }

    pub(crate) fn raw_with<C: RemoteCommand>(&self, command: &C, env: &[(&str, &str)]) -> RawOutput {
        self.call(command.render(), env)
    }

    /// The temporary files have so many KiB of room.
    pub(crate) fn raw_in_room<C: RemoteCommand>(&self, command: &C, room: u32) -> RawOutput {
        let call = command.render();
        let mount = "mount -t tmpfs -o size=\"$ROOM\"k tmpfs \"$TMPDIR\" && exec bash --norc -c \"$PROGRAM\"";
        let program = format!("exec unshare --map-root-user --mount bash -c '{mount}'");
        let env = [("ROOM", room.to_string()), ("PROGRAM", call.program.to_owned())];
        self.call(
            Call { program: program.leak(), ..call },
            &env.each_ref().map(|(name, text)| (*name, text.as_str())),
        )
    }

    /// How many processes a program and all that it starts are: they have numbers of their own, from 1.
    pub(crate) fn counted<C: RemoteCommand>(&self, command: &C) -> (RawOutput, u32) {
        let call = command.render();
        let count =
            "bash --norc -c \"$PROGRAM\"; code=$?; (echo \"$BASHPID\" >\"$SITE/processes\"); exit \"$code\"";
        let program = format!("exec unshare --map-root-user --pid --fork bash -c '{count}'");
        let env = [("PROGRAM", call.program)];
        let output = self.call(Call { program: program.leak(), ..call }, &env);
        (output, self.read("processes").trim().parse().unwrap())
    }

    /// Only the first bytes of stdin arrive.
    pub(crate) fn raw_cut<C: RemoteCommand>(&self, command: &C, length: usize) -> RawOutput {
        let mut call = command.render();
        call.stdin.truncate(length);
        self.call(call, &[])
    }

    /// Runs a program whose caller is gone before it says anything.
    pub(crate) fn unheard<C: RemoteCommand>(&self, command: &C) {
        let call = command.render();
        let mut child = self.start(call.program, &[]);
        drop((child.stdout.take(), child.stderr.take()));
        child.stdin.take().unwrap().write_all(&call.stdin).unwrap();
        child.wait().unwrap();
    }

    fn start(&self, program: &str, env: &[(&str, &str)]) -> Child {
        let _alone = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        Command::new("bash")
            .args(["--noprofile", "--norc", "-c", &format!("{}{program}", self.first)])
            .env("PATH", format!("{}:/usr/bin:/bin", self.file("bin").display()))
            .env("TMPDIR", self.file("tmp"))
            .env("SITE", self.dir.path())
            // A site may set it for all its users.
            .env("POSIXLY_CORRECT", "1")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn call(&self, call: Call, env: &[(&str, &str)]) -> RawOutput {
        let mut child = self.start(call.program, env);
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            // A program that gives up early does not read everything.
            let _ = stdin.write_all(&call.stdin);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.stdout.len() <= call.stdout_limit, "{} bytes", output.stdout.len());
        let left: Vec<_> = fs::read_dir(self.file("tmp")).unwrap().collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
        RawOutput {
            stdout: output.stdout,
            stderr: output.stderr,
            exit_code: output.status.code().unwrap_or(KILLED),
        }
    }

    pub(crate) fn try_run<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, ParseError> {
        let raw = self.raw(command);
        assert_eq!(String::from_utf8_lossy(&raw.stderr), "", "nothing is said on stderr");
        assert_eq!(raw.exit_code, 0);
        command.parse(&raw)
    }

    pub(crate) fn run<C: RemoteCommand>(&self, command: &C) -> C::Output {
        self.try_run(command).unwrap()
    }
}

/// The attempt whose Slurm job has this name.
pub(crate) fn key(name: &str) -> AttemptKey {
    AttemptKey { subject: Subject::Job(Uuid::nil()), name: name.parse().unwrap() }
}

pub(crate) fn id(number: u32) -> slurm::SlurmJobId {
    slurm::SlurmJobId::new(number).unwrap()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
