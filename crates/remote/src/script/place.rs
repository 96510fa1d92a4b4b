//! Where the components of a job run: on the nodes, or in containers there.

use std::collections::BTreeMap;

use slurm::EnvKey;

use super::{ScriptError, is_of_hooks, quoted};

/// Where a component runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// On the node itself.
    Host,
    /// In a container, by the Pyxis plugin of srun.
    Pyxis(Container),
    /// In a container, by Apptainer.
    Apptainer(Container),
}

/// A container.
#[derive(Debug, Clone)]
pub struct Container {
    /// As its place spells it: for Pyxis `registry#image:tag`, for Apptainer `docker://registry/image:tag`, or the path of a file.
    pub image: String,
    /// `/from:/to:ro`, none with a comma.
    pub mounts: Vec<String>,
    /// Variables that [Enroot's hooks read](super::is_of_hooks), none of them secret: they are in the script's text. They
    /// override those of the image.
    pub hook_env: BTreeMap<EnvKey, String>,
    /// Whether it has the user's home directory. By default the cluster's configuration decides.
    pub home: Option<bool>,
}

impl Place {
    /// The options of srun, and the words before the entry shell.
    pub(super) fn options(&self) -> Result<(Vec<String>, Vec<String>), ScriptError> {
        Ok(match self {
            Self::Host => (Vec::new(), Vec::new()),
            Self::Pyxis(container) => (container.pyxis()?, Vec::new()),
            Self::Apptainer(container) => (Vec::new(), container.apptainer()?),
        })
    }
}

impl Container {
    /// Puts the variables for Enroot's hooks before srun, in the environment that it passes on.
    pub(super) fn set(&self, words: &mut Vec<String>) -> Result<(), ScriptError> {
        if self.hook_env.is_empty() {
            return Ok(());
        }
        let mut first = vec!["env".to_owned()];
        for (key, value) in &self.hook_env {
            if !is_of_hooks(key, value) {
                let forbidden = "control characters, nor be for another program";
                return Err(ScriptError::Forbidden { what: "a variable of Enroot's hooks", forbidden });
            }
            first.push(format!("{key}={}", quoted("a variable of Enroot's hooks", value)?));
        }
        words.splice(..0, first);
        Ok(())
    }

    fn check(&self) -> Result<(), ScriptError> {
        if self.image.is_empty() || self.image.contains(char::is_control) {
            let forbidden = "control characters, nor be empty";
            return Err(ScriptError::Forbidden { what: "the image", forbidden });
        }
        let is_mount =
            |mount: &String| !mount.is_empty() && !mount.contains(|c: char| c.is_control() || c == ',');
        if !self.mounts.iter().all(is_mount) {
            let forbidden = "commas or control characters, nor be empty";
            return Err(ScriptError::Forbidden { what: "a mount", forbidden });
        }
        Ok(())
    }

    /// The options of Pyxis.
    fn pyxis(&self) -> Result<Vec<String>, ScriptError> {
        self.check()?;
        let Self { image, mounts, hook_env, home } = self;
        let mut words = vec![format!("--container-image={}", quoted("the image", image)?)];
        if !mounts.is_empty() {
            words.push(format!("--container-mounts={}", quoted("a mount", &mounts.join(","))?));
        }
        match home {
            Some(true) => words.push("--container-mount-home".to_owned()),
            Some(false) => words.push("--no-container-mount-home".to_owned()),
            None => {}
        }
        // They override those of the image. None has a newline or a meaning for Enroot, which it would split or follow.
        let of_task = ["SLURM_PROCID", "SLURM_NODEID", "SLURMD_NODENAME"].into_iter();
        let listed: Vec<&str> = of_task.chain(hook_env.keys().map(EnvKey::as_str)).collect();
        words.push(format!("--container-env={}", listed.join(",")));
        Ok(words)
    }

    /// The command that runs the entry shell in the container.
    fn apptainer(&self) -> Result<Vec<String>, ScriptError> {
        self.check()?;
        let mut words = vec!["apptainer exec --nv".to_owned()];
        if self.home == Some(false) {
            words.push("--no-home".to_owned());
        }
        if !self.mounts.is_empty() {
            words.push(format!("--bind={}", quoted("a mount", &self.mounts.join(","))?));
        }
        words.push(quoted("the image", &self.image)?);
        Ok(words)
    }
}
