//! Puts the files of one TAO job below a directory, exactly as a submission puts them on a cluster, and prints the
//! path of its batch script. For `ci/tao-container-check`.

use std::{env, error::Error, fs, os::unix::fs::PermissionsExt, path::Path};

use chrono::DateTime;
use domain::{Cluster, Job, JobId, JobRequest, JobSpec, Owner, Secrets, plan_submission};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [base, request] = arguments.as_slice() else {
        return Err("usage: stage_tao_job BASE_DIRECTORY REQUEST.json".into());
    };
    let request: JobRequest = serde_json::from_str(&fs::read_to_string(request)?)?;
    let cluster = Cluster { base_dir: base.parse()?, ..testkit::cluster() };
    let clusters = [cluster];
    let (spec, secrets, cluster): (JobSpec, Secrets, &Cluster) =
        JobSpec::from_request(request, &clusters).map_err(|faults| format!("{faults:?}"))?;
    let id = JobId::new(Uuid::from_u128(1));
    let now = DateTime::UNIX_EPOCH;
    let job = Job::accepted(id, Owner::new("check"), cluster.name.clone(), spec, now);
    let attempt = job.new_attempt(cluster.base_dir.clone(), now)?;
    let submission = plan_submission(&job, &attempt, cluster, &secrets)?;
    let results = [&submission.results_dir];
    for dir in submission.make_dirs.iter().chain([&submission.state_dir]).chain(results) {
        fs::create_dir_all(dir.as_str())?;
    }
    for file in &submission.files {
        let path = Path::new(file.path.as_str());
        fs::write(path, &file.bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(file.mode))?;
    }
    write(&submission.script_path)?;
    Ok(())
}

fn write(path: &slurm::RemotePath) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{path}")
}
