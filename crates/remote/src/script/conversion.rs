//! The batch script that converts an image of a registry into a SquashFS file.

use std::fmt::Write;

use crate::script::{CLAIM, MARKS, ScriptError, assign, directives::path_word, quoted};
use slurm::{Account, JobName, Partition, RemotePath};

const WHOLE_IMAGE: &str = include_str!("../programs/whole_image.sh");
const CONVERT: &str = include_str!("convert.sh");

/// The parts of the script of a conversion.
///
/// It claims its state directory and writes its markers there like a [`BatchScript`](crate::BatchScript), so the same commands
/// locate, poll and conclude it.
#[derive(Debug, Clone)]
pub struct ConversionScript {
    /// The run's name in Slurm.
    pub job_name: JobName,
    /// The partition.
    pub partition: Partition,
    /// The account; the user's default if absent.
    pub account: Option<Account>,
    /// The time limit.
    pub minutes: u32,
    /// Memory of its node, in GiB; the partition's default if absent, for sites that refuse `--mem`.
    pub memory_gb: Option<u32>,
    /// Where claim, markers and logs are. Must exist when the job starts.
    pub state_dir: RemotePath,
    /// The image as `enroot import` reads it: `docker://registry#image:tag`.
    pub uri: String,
    /// The file to create. An existing file that is not a complete image is replaced.
    pub target: RemotePath,
    /// The parent of the job's own temporary directory.
    pub temp_root: RemotePath,
}

impl ConversionScript {
    /// The text of the script.
    pub fn render(&self) -> Result<String, ScriptError> {
        for (what, count) in
            [("the memory of a conversion", self.memory_gb.unwrap_or(1)), ("its time", self.minutes)]
        {
            if count == 0 {
                return Err(ScriptError::Zero { what });
            }
        }
        if self.uri.contains(char::is_control) {
            return Err(ScriptError::Forbidden { what: "the image", forbidden: "control characters" });
        }
        let mut out = String::from("#!/bin/bash\n");
        let mut line = |option: &str, value: &dyn std::fmt::Display| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "#SBATCH --{option}={value}");
        };
        line("job-name", &self.job_name);
        if let Some(account) = &self.account {
            line("account", account);
        }
        line("partition", &self.partition);
        line("nodes", &1);
        line("ntasks", &1);
        if let Some(memory_gb) = self.memory_gb {
            line("mem", &format_args!("{memory_gb}G"));
        }
        line("time", &self.minutes);
        line("output", &path_word(&self.state_dir, "main.out")?);
        line("error", &path_word(&self.state_dir, "main.err")?);
        line("open-mode", &"append");
        out.push_str("#SBATCH --requeue\n");
        out.push_str("# Written by tao-slurm: converts one image for all the jobs that wait for it.\n\n");
        let state_dir = quoted("the state directory", self.state_dir.as_str())?;
        assign(&mut out, "_tao_state", &state_dir);
        // Its logs stay in the state directory: users do not look for them.
        assign(&mut out, "_tao_logs", &state_dir);
        assign(&mut out, "_tao_target", &quoted("the cached image", self.target.as_str())?);
        assign(&mut out, "_tao_uri", &quoted("the image", &self.uri)?);
        assign(&mut out, "_tao_temp_root", &quoted("the temporary directory", self.temp_root.as_str())?);
        for part in [CLAIM, MARKS] {
            out.push_str(part);
        }
        out.push('\n');
        out.push_str(WHOLE_IMAGE);
        out.push_str(CONVERT);
        Ok(out)
    }
}
