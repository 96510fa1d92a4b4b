//! Resuming a training from its newest checkpoint, in the way that TAO's configurations define it.

use serde_json::Value;
use slurm::RemotePath;

use crate::{
    job::{identity::AttemptNo, stored::Job},
    request::spec::Work,
};

impl Job {
    /// Whether the next submission resumes from a checkpoint: it is a later attempt of a training. TAO looks for
    /// checkpoints for this action only.
    pub fn resumes_from_checkpoint(&self) -> bool {
        let again = self.attempt.as_ref().is_some_and(|attempt| attempt.no > AttemptNo::FIRST);
        again && self.is_training()
    }

    /// Whether a later attempt resumes from a checkpoint; other work starts over.
    pub(crate) fn is_training(&self) -> bool {
        matches!(&self.spec.work, Work::Tao { action, .. } if action.as_str() == "train")
    }

    /// The job to stage when it resumes from `checkpoint`.
    #[must_use]
    pub fn resumed_from(&self, checkpoint: &RemotePath) -> Self {
        let mut job = self.clone();
        if let Work::Tao { specs, .. } = &mut job.spec.work {
            point_to(specs, checkpoint.as_str());
        }
        job
    }
}

/// Sets every parameter whose name contains both `resume` and `path`, and turns on every boolean whose name contains
/// `resume`, as TAO's container does. It adds no parameters: only the container knows which of them its network has.
fn point_to(specs: &mut Value, checkpoint: &str) {
    match specs {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.to_ascii_lowercase();
                let resume = key.contains("resume");
                match value {
                    Value::Bool(on) if resume => *on = true,
                    Value::Null | Value::String(_) if resume && key.contains("path") => {
                        *value = checkpoint.into();
                    }
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                    Value::Array(_) | Value::Object(_) => point_to(value, checkpoint),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point_to(item, checkpoint)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{as_tao, submitting_job};

    #[test]
    fn every_resume_path_is_set_and_every_resume_switch_is_on() {
        let mut specs = json!({
            "train": {"resume_training_checkpoint_path": null, "num_epochs": 3, "resume": false},
            "model": [{"Resume_Model_Path": "/old"}],
            "resume_epoch": 3,
            "path": "/data",
        });
        point_to(&mut specs, "/r/model_epoch_002.pth");
        assert_eq!(
            specs,
            json!({
                "train": {"resume_training_checkpoint_path": "/r/model_epoch_002.pth", "num_epochs": 3, "resume": true},
                "model": [{"Resume_Model_Path": "/r/model_epoch_002.pth"}],
                "resume_epoch": 3,
                "path": "/data",
            })
        );
    }

    #[test]
    fn only_a_later_attempt_of_a_training_resumes() {
        let first = as_tao(submitting_job());
        assert!(!first.resumes_from_checkpoint());
        let mut second = first.clone();
        second.attempt.as_mut().unwrap().no = AttemptNo::FIRST.next();
        assert!(second.resumes_from_checkpoint());
        let mut command = submitting_job();
        command.attempt.as_mut().unwrap().no = AttemptNo::FIRST.next();
        assert!(!command.resumes_from_checkpoint());
    }
}
