//! Checks a login host, and the cluster through it.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat,
    answer::{Answer, Line},
    rpcs,
    stdin_writer::StdinWriter,
};
use slurm::{Account, PartitionList, RemotePath, failure};

const PROGRAM: &str = program!("preamble", "enroot_config", "preflight");

/// All slow steps run side by side, and each may take 12 s.
const DEADLINE: Duration = Duration::from_secs(20);
/// The most partitions to try, each with its own sbatch.
const MOST_TRIALS: usize = 16;

/// Collects the facts for a preflight. It writes and removes one file of 64 KiB in the base directory.
#[derive(Debug, Clone)]
pub struct Preflight {
    /// Whether to check the cluster too, which is the same from every login host.
    pub deep: bool,
    /// Where jobs keep their files.
    pub base_dir: RemotePath,
    /// The account of jobs.
    pub account: Option<Account>,
    /// The partitions of jobs.
    pub partitions: Option<PartitionList>,
    /// GPUs for the trial job, because some clusters refuse jobs without any.
    pub gpus: u32,
}

/// The facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightAnswer {
    /// Slurm commands that are not on PATH.
    pub missing_commands: Vec<String>,
    /// Whether enroot is on PATH.
    pub enroot: bool,
    /// The base directory.
    pub base: BaseDir,
    /// The facts about the cluster; none if they were not asked for.
    pub deep: Option<DeepFacts>,
}

/// The base directory of jobs on the login host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseDir {
    /// Whether jobs could write there.
    pub state: BaseState,
    /// The command's output, one printable line.
    pub said: String,
    /// Free and all bytes of its file system, for our user.
    pub space: Option<(u64, u64)>,
    /// Free inodes of its file system; none where they are not counted.
    pub free_inodes: Option<u64>,
}

/// Whether jobs could write into the base directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseState {
    /// It exists, and a file of 64 KiB could be written.
    Writable,
    /// It exists, and the file could not be written.
    Unwritable,
    /// It does not exist, and can be created.
    Creatable,
    /// It does not exist, and cannot be created.
    Uncreatable,
    /// The file system did not answer within 10 s.
    Silent,
}

/// The exit code and output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit code; 124 after a timeout, 125 if it was not started.
    pub code: i32,
    /// One printable line of at most 400 characters.
    pub text: String,
}

/// The facts about the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeepFacts {
    /// `scontrol ping`.
    pub ping: Option<Said>,
    /// `ClusterName`.
    pub cluster_name: Option<String>,
    /// `sacctmgr show assoc`; its text is that of stderr.
    pub accounting: Option<Said>,
    /// The associations of our user, on all clusters of the accounting database.
    pub associations: Vec<Association>,
    /// Whether `srun --help` knows Pyxis's options, and what it said on stderr.
    pub pyxis: Option<(bool, Said)>,
    /// `lfs quota` or `quota`; none where there is neither.
    pub quota: Option<Said>,
    /// A trial for each partition, in their order; a single one when none are configured.
    pub trials: Vec<Said>,
    /// Mode of the file with enroot's credentials; none when there is no such file.
    pub credentials_mode: Option<u32>,
    /// The machines in it.
    pub machines: Vec<String>,
}

/// An association of a user with an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Association {
    /// On which cluster.
    pub cluster: String,
    /// With which account.
    pub account: String,
    /// In which partition alone; empty for all.
    pub partition: String,
}

impl Preflight {
    fn tried(&self) -> Vec<slurm::Partition> {
        self.partitions.iter().flat_map(PartitionList::iter).take(MOST_TRIALS).collect()
    }
}

impl RemoteCommand for Preflight {
    type Output = PreflightAnswer;

    const NAME: &'static str = "preflight";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let partitions = self.tried();
        let mut stdin = StdinWriter::default();
        stdin.field(u8::from(self.deep)).field(&self.base_dir);
        stdin
            .field(self.account.as_ref().map_or("-", Account::as_str))
            .field(self.gpus)
            .field(partitions.len());
        stdin.end_line();
        stdin.rows(&partitions);
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + 512 * 1024)
    }

    fn rpcs(&self) -> u32 {
        if !self.deep {
            return 0;
        }
        let trials = rpcs::times(self.tried().len().max(1), rpcs::TEST_ONLY);
        rpcs::PING + rpcs::SHOW_CONFIG + rpcs::SACCTMGR + trials
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut missing_commands = Vec::new();
        let mut enroot = false;
        let mut base = None;
        let mut deep = DeepFacts::default();
        for mut line in answer.lines() {
            match line.tag {
                b"COMMAND" => {
                    let name = String::from_utf8_lossy(line.word()?).into_owned();
                    if line.value::<u8>()? == 0 {
                        missing_commands.push(name);
                    }
                }
                b"ENROOT" => enroot = line.value::<u8>()? == 1,
                b"BASE" => base = Some(BaseDir::silent(said(&mut line)?)),
                b"ABOUT" => {
                    if let Some(base) = &mut base {
                        base.learn(&line.rest());
                    }
                }
                b"PING" => deep.ping = Some(said(&mut line)?),
                b"CLUSTER" => deep.cluster_name = name(&mut line),
                b"ASSOC" => deep.accounting = Some(said(&mut line)?),
                b"ROW" => deep.associations.extend(association(&line.rest())),
                b"SRUN" => deep.pyxis = Some((line.value::<u8>()? == 1, said(&mut line)?)),
                b"QUOTA" => {
                    let tool = line.word()?;
                    let said = said(&mut line)?;
                    deep.quota = (tool != b"none").then_some(said);
                }
                b"TRIAL" => {
                    line.index(MOST_TRIALS)?;
                    deep.trials.push(said(&mut line)?);
                }
                b"CREDENTIALS" => deep.credentials_mode = u32::from_str_radix(&line.rest(), 8).ok(),
                b"MACHINE" => deep.machines.push(line.rest().into_owned()),
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        let base = base.ok_or_else(|| answer.lacks("the base directory"))?;
        Ok(PreflightAnswer { missing_commands, enroot, base, deep: self.deep.then_some(deep) })
    }
}

impl BaseDir {
    fn silent(said: Said) -> Self {
        Self { state: BaseState::Silent, said: said.text, space: None, free_inodes: None }
    }

    fn learn(&mut self, about: &str) {
        let words: Vec<&str> = about.split(' ').collect();
        match words.as_slice() {
            ["writable"] => self.state = BaseState::Writable,
            ["unwritable"] => self.state = BaseState::Unwritable,
            ["creatable"] => self.state = BaseState::Creatable,
            ["uncreatable"] => self.state = BaseState::Uncreatable,
            ["space", free, all] => self.space = free.parse().ok().zip(all.parse().ok()),
            ["inodes", free] => self.free_inodes = free.parse().ok(),
            _ => {}
        }
    }
}

fn said(line: &mut Line<'_>) -> Result<Said, ParseError> {
    Ok(Said { code: line.value()?, text: failure::classify(&line.blob_text()?).excerpt })
}

fn name(line: &mut Line<'_>) -> Option<String> {
    let text = line.blob_text().ok()?.trim().to_owned();
    (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())).then_some(text)
}

fn association(row: &str) -> Option<Association> {
    let fields: Vec<&str> = row.split('|').collect();
    let [cluster, account, partition] = fields[..] else { return None };
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
    let known = !account.is_empty() && [cluster, account, partition].into_iter().all(plain);
    known.then(|| Association {
        cluster: cluster.to_owned(),
        account: account.to_owned(),
        partition: partition.to_owned(),
    })
}
