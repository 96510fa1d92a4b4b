//! The configuration of `nemo-evaluator-launcher`, as a job with its own servers or as a pipeline of such jobs.

use std::fmt::Write as _;

use anyhow::{anyhow, bail};
use serde_json::{Map, Value, json};

use super::{
    config::{Config, Host},
    evaluation::{Evaluation, evaluations, program_name},
    export::{destinations, export},
    left_out::left_out,
    variables::Variables,
};

/// What becomes of the evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Steps of one job, which share its servers.
    Job,
    /// A job each, with servers of its own, as the launcher has it.
    Pipeline,
}

/// What the configuration does not say.
pub(crate) struct Options<'a> {
    pub(crate) form: Form,
    /// Values in the place of those of the file, by their dotted paths.
    pub(crate) changes: Vec<(String, Value)>,
    /// The image of all evaluations, or of one.
    pub(crate) images: Vec<(Option<String>, String)>,
    /// The value of a variable on this machine.
    pub(crate) host: Host<'a>,
}

/// A request, and what of the configuration is not in it.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) request: Value,
    pub(crate) left_out: Vec<String>,
}

/// The options of sbatch that have a field of `resources` or of `backend_details`.
const OF_RESOURCES: [&str; 5] = ["constraint", "nodelist", "exclude", "licenses", "switches"];
const OF_BACKEND: [&str; 5] = ["qos", "reservation", "nice", "begin", "deadline"];

/// The request for a configuration.
pub(crate) fn nemo_evaluator(file: Value, options: &Options<'_>) -> anyhow::Result<Imported> {
    let config = Config::compose(file, &options.changes, options.host)?;
    match config.text("execution.type")?.as_deref() {
        Some("slurm") => {}
        other => bail!(
            "the execution is `{}`; only `execution: slurm/default` is a job for Slurm",
            other.unwrap_or("none")
        ),
    }
    let all = evaluations(&config)?;
    if all.is_empty() {
        bail!("`evaluation.tasks` has no task; name at least one");
    }
    let is_task = |task: &String| all.iter().any(|one| one.task == *task);
    if let Some(other) =
        options.images.iter().filter_map(|(task, _)| task.as_ref()).find(|task| !is_task(task))
    {
        bail!("`--image {other}=…` is of no task of the file");
    }
    let import = Import { config: &config, options };
    let request = match options.form {
        Form::Job => import.job(&all)?,
        Form::Pipeline => {
            let (mut jobs, destinations) = (Map::new(), destinations(&config)?);
            for one in &all {
                jobs.insert(one.name.clone(), import.job(std::slice::from_ref(one))?);
                if !destinations.is_empty() {
                    // No evaluation has a name with a full stop.
                    jobs.insert(format!("{}.export", one.name), export(&config, one, &destinations)?);
                }
            }
            json!({"name": import.name(&all)?, "jobs": jobs})
        }
    };
    Ok(Imported { request, left_out: left_out(&config, options.form == Form::Job, &all)? })
}

struct Import<'a> {
    config: &'a Config<'a>,
    options: &'a Options<'a>,
}

impl Import<'_> {
    fn name(&self, evaluations: &[Evaluation]) -> anyhow::Result<String> {
        let model = self.config.text("deployment.served_model_name")?;
        let model = model.or(self.config.text("target.api_endpoint.model_id")?).unwrap_or_default();
        let model = model.rsplit('/').next().unwrap_or_default().to_owned();
        let tasks: Vec<&str> = evaluations.iter().map(|one| one.task.as_str()).collect();
        Ok(format!("{model} {}", tasks.join(" ")).trim().chars().take(200).collect())
    }

    /// A job with the servers and these evaluations.
    fn job(&self, evaluations: &[Evaluation]) -> anyhow::Result<Value> {
        let config = self.config;
        let mut servers = Vec::new();
        let (mut services, mut nodes) = (Vec::new(), 0);
        if config.text("deployment.type")?.is_some_and(|kind| kind != "none") {
            let own = config.number("execution.num_nodes")?.unwrap_or(1);
            let instances = config.number("execution.num_instances")?.unwrap_or(1).max(1);
            services.push(self.service("model", "deployment", own, instances)?);
            servers.push(("model".to_owned(), "deployment".to_owned()));
            nodes = u32::saturating_add(nodes, own);
        }
        for name in config.keys("auxiliary_deployments") {
            let at = format!("auxiliary_deployments.{name}");
            if config.text(&format!("{at}.type"))?.is_none_or(|kind| kind == "none") {
                continue;
            }
            let own = config.number(&format!("{at}.num_nodes"))?.unwrap_or(1);
            services.push(self.service(&program_name(&name), &at, own, 1)?);
            servers.push((program_name(&name), at));
            nodes = u32::saturating_add(nodes, own);
        }
        let (mut steps, mut files) = (Vec::new(), Map::new());
        for one in evaluations {
            steps.push(self.step(one, &servers, evaluations.len() > 1)?);
            files.insert(format!("{}.yaml", one.name), json!({"json": one.document(config, &servers)?}));
        }
        let mut job = Map::new();
        job.insert("name".to_owned(), self.name(evaluations)?.into());
        if !services.is_empty() {
            job.insert("services".to_owned(), services.into());
        }
        job.insert("steps".to_owned(), steps.into());
        job.insert("files".to_owned(), files.into());
        let seconds = seconds(&config.needed("execution.walltime")?)?;
        job.insert("restart".to_owned(), self.restart()?);
        job.insert("resources".to_owned(), self.resources(nodes.max(1), seconds)?);
        job.insert("backend_details".to_owned(), self.backend()?);
        Ok(job.into())
    }

    /// A deployment. `at`: its place in the configuration, `nodes`: for all instances.
    fn service(&self, name: &str, at: &str, nodes: u32, instances: u32) -> anyhow::Result<Value> {
        let config = self.config;
        if !nodes.is_multiple_of(instances) {
            bail!(
                "`execution.num_nodes` is {nodes}, which cannot be shared by {instances} instances; change one of them"
            );
        }
        // The launcher's own script for several nodes starts Ray itself. This service does that.
        let of_ray = config.text(&format!("{at}.type"))?.as_deref() == Some("vllm_ray");
        let mut command = String::new();
        if let Some(before) = config.text(&format!("{at}.pre_cmd"))? {
            command = before.trim_end().to_owned() + "\n";
        }
        let own = config.needed(&format!("{at}.command"))?;
        if own.contains("PROC_ID") || own.contains("MASTER_IP") || own.contains("NODES_PER_INSTANCE") {
            let count = nodes / instances;
            let _ = writeln!(
                command,
                "export PROC_ID=${{NODE_RANK:-0}} MASTER_IP=${{MASTER_ADDR:-127.0.0.1}} NODES_PER_INSTANCE={count}"
            );
        }
        command += own.trim_end();
        let mut service = Map::new();
        service.insert("name".to_owned(), name.into());
        service.insert("image".to_owned(), config.needed(&format!("{at}.image"))?.into());
        service.insert("nodes".to_owned(), (nodes / instances).into());
        if instances > 1 {
            service.insert("replicas".to_owned(), instances.into());
            let image = config.text("execution.proxy.image")?;
            service.insert("balance".to_owned(), json!({"image": image}));
        }
        service.insert("launcher".to_owned(), if of_ray { "ray" } else { "per_node" }.into());
        service.insert("command".to_owned(), command.into());
        service.insert("port".to_owned(), config.number(&format!("{at}.port"))?.unwrap_or(8000).into());
        let health = config.text(&format!("{at}.endpoints.health"))?.unwrap_or_else(|| "/health".to_owned());
        service.insert(
            "ready".to_owned(),
            json!({"http": health, "timeout_minutes": self.minutes_to_be_ready()?}),
        );
        let mut mounts = Vec::new();
        for (field, inside) in [("checkpoint_path", "/checkpoint:ro"), ("cache_path", "/cache")] {
            if let Some(path) = config.text(&format!("{at}.{field}"))?.filter(|path| !path.is_empty()) {
                mounts.push(format!("{path}:{inside}"));
            }
        }
        let of_mounts = match at.strip_prefix("auxiliary_deployments.") {
            Some(own) => format!("execution.mounts.auxiliary.{own}"),
            None => "execution.mounts.deployment".to_owned(),
        };
        service.insert("container".to_owned(), self.container(mounts, &of_mounts)?);
        self.variables(&[format!("{at}.env_vars")])?.put(&mut service);
        Ok(service.into())
    }

    fn step(
        &self,
        one: &Evaluation,
        servers: &[(String, String)],
        of_several: bool,
    ) -> anyhow::Result<Value> {
        let config = self.config;
        let mut step = Map::new();
        step.insert("name".to_owned(), one.name.clone().into());
        let named = |of: Option<&str>| {
            let image = self.options.images.iter().find(|(task, _)| task.as_deref() == of);
            image.map(|(_, image)| Value::from(image.clone()))
        };
        let own = one.own(config, "container")?;
        let image = named(Some(&one.task)).or(own).or_else(|| named(None)).ok_or_else(|| {
            anyhow!(
                "the image of {} is only in the launcher's list; give it with `--image {}=IMAGE`",
                one.task,
                one.task
            )
        })?;
        step.insert("image".to_owned(), image);
        step.insert("nodes".to_owned(), 1.into());
        step.insert("launcher".to_owned(), "plain".into());
        step.insert("command".to_owned(), one.command(config, servers)?.into());
        if of_several {
            step.insert("continue_on_error".to_owned(), true.into());
        }
        let mut mounts = Vec::new();
        let mut variables = Vec::new();
        if let Some(Value::String(data)) = one.own(config, "dataset_dir")? {
            let inside = one.own(config, "dataset_mount_path")?;
            let inside = inside.as_ref().and_then(Value::as_str).unwrap_or("/datasets");
            mounts.push(format!("{data}:{inside}"));
            variables.push(("NEMO_EVALUATOR_DATASET_DIR".to_owned(), Value::from(format!("lit:{inside}"))));
        }
        if let Some(Value::Object(own)) = one.own(config, "env_vars")? {
            variables.extend(own);
        }
        match config.get("execution.evaluation_gpu_visible")? {
            Some(Value::Bool(true)) => {
                variables.push(("NVIDIA_VISIBLE_DEVICES".to_owned(), "lit:all".into()));
            }
            Some(Value::String(devices)) => {
                variables.push(("NVIDIA_VISIBLE_DEVICES".to_owned(), format!("lit:{devices}").into()));
            }
            _ => {}
        }
        step.insert("container".to_owned(), self.container(mounts, "execution.mounts.evaluation")?);
        let mut read = self.variables(&["evaluation.env_vars".to_owned()])?;
        for (name, value) in variables {
            read.add(&name, &value, config.host)?;
        }
        // The launcher takes the key of an endpoint from a variable of its name.
        let key = config.text("target.api_endpoint.api_key_name")?;
        if let Some(key) = key.filter(|name| !name.starts_with('<') && !read.has(name)) {
            read.add(&key, &format!("host:{key}").into(), config.host)?;
        }
        read.put(&mut step);
        Ok(step.into())
    }

    fn variables(&self, sections: &[String]) -> anyhow::Result<Variables> {
        let sections: Vec<String> =
            ["env_vars".to_owned()].into_iter().chain(sections.iter().cloned()).collect();
        Variables::read(self.config, &sections)
    }

    fn container(&self, mut mounts: Vec<String>, of_mounts: &str) -> anyhow::Result<Value> {
        mounts.extend(self.config.mounts(of_mounts)?);
        let home = self.config.get("execution.mounts.mount_home")?.and_then(|home| home.as_bool());
        let mut container = Map::new();
        if !mounts.is_empty() {
            container.insert("mounts".to_owned(), mounts.into());
        }
        container.insert("mount_home".to_owned(), home.unwrap_or(false).into());
        Ok(container.into())
    }

    /// The launcher waits for the whole time limit by default. An hour is enough for the largest models.
    fn minutes_to_be_ready(&self) -> anyhow::Result<f64> {
        let given = self.config.number("execution.endpoint_readiness_timeout")?;
        let limit = seconds(&self.config.needed("execution.walltime")?)?;
        Ok(f64::from(given.unwrap_or(3600).min(limit)) / 60.0)
    }

    /// The launcher goes on after these ends, too.
    fn restart(&self) -> anyhow::Result<Value> {
        let causes =
            ["timeout", "preempted", "node_failure", "boot_failure", "launch_failure", "infrastructure"];
        let most = self.config.text("execution.max_walltime")?.map(|text| seconds(&text)).transpose()?;
        let mut restart = json!({"on": causes, "prequeue": true});
        if let (Some(most), Some(fields)) = (most, restart.as_object_mut()) {
            fields.insert("max_total_hours".to_owned(), (f64::from(most) / 3600.0).into());
        }
        Ok(restart)
    }

    fn resources(&self, nodes: u32, seconds: u32) -> anyhow::Result<Value> {
        let config = self.config;
        let mut resources = Map::new();
        resources.insert("num_nodes".to_owned(), nodes.into());
        let gres = config.text("execution.gres")?.unwrap_or_default();
        let (kind, count) = gpus(&gres)?;
        let count = config.number("execution.gpus_per_node")?.unwrap_or(count);
        resources.insert("gpus_per_node".to_owned(), count.into());
        resources.insert("max_num_gpus_per_node".to_owned(), count.max(8).into());
        if let Some(kind) = kind {
            resources.insert("gpu_type".to_owned(), kind.into());
        }
        let flags = config.fields("execution.sbatch_extra_flags")?;
        resources.insert("exclusive".to_owned(), (flags.get("exclusive") == Some(&Value::Bool(true))).into());
        let own =
            flags.into_iter().filter(|(key, value)| OF_RESOURCES.contains(&key.as_str()) && !value.is_null());
        resources.extend(own.map(|(key, value)| (key, text(value))));
        resources.insert("time_hours".to_owned(), (f64::from(seconds) / 3600.0).into());
        Ok(resources.into())
    }

    fn backend(&self) -> anyhow::Result<Value> {
        let config = self.config;
        let mut backend = Map::new();
        backend.insert("account".to_owned(), config.needed("execution.account")?.into());
        backend.insert("partition".to_owned(), config.needed("execution.partition")?.into());
        if let Some(comment) = config.text("execution.sbatch_comment")? {
            backend.insert("comment".to_owned(), comment.into());
        }
        let mut flags = config.fields("execution.sbatch_extra_flags")?;
        flags.retain(|key, value| {
            !value.is_null() && key != "exclusive" && !OF_RESOURCES.contains(&key.as_str())
        });
        for key in OF_BACKEND {
            backend.extend(
                flags
                    .remove(key)
                    .map(|value| (key.to_owned(), if key == "nice" { value } else { text(value) })),
            );
        }
        if !flags.is_empty() {
            backend.insert("sbatch_options".to_owned(), flags.into());
        }
        Ok(backend.into())
    }
}

/// The fields of a request are texts.
fn text(value: Value) -> Value {
    if value.is_string() { value } else { value.to_string().into() }
}

/// The type and the number of GPUs in `gpu:8` or `gpu:h100:8`.
fn gpus(gres: &str) -> anyhow::Result<(Option<String>, u32)> {
    let parts: Vec<&str> = gres.split(':').collect();
    let (kind, count) = match parts.as_slice() {
        [""] => return Ok((None, 0)),
        ["gpu", count] => (None, count),
        ["gpu", kind, count] => (Some((*kind).to_owned()), count),
        _ => bail!("`execution.gres` is {gres}; it must be such as gpu:8 or gpu:h100:8"),
    };
    let count =
        count.parse().map_err(|_| anyhow!("`execution.gres` is {gres}; its last part must be a number"))?;
    Ok((kind, count))
}

/// A time such as `04:00:00` in seconds.
fn seconds(text: &str) -> anyhow::Result<u32> {
    let (days, time) = text.split_once('-').map_or((Some(0), text), |(days, time)| (days.parse().ok(), time));
    let parts: Option<Vec<u32>> = time.split(':').map(|part| part.parse().ok()).collect();
    let whole = match (days, parts.as_deref()) {
        (Some(days), Some([hours, minutes, seconds])) => {
            [(days, 86_400), (*hours, 3600), (*minutes, 60), (*seconds, 1)]
        }
        _ => bail!("the time {text} must be hours, minutes and seconds, such as 04:00:00"),
    };
    let whole =
        whole.into_iter().try_fold(0_u32, |sum, (number, of)| sum.checked_add(number.checked_mul(of)?));
    whole.ok_or_else(|| anyhow!("the time {text} is too long"))
}

#[cfg(test)]
#[path = "nemo_evaluator_tests.rs"]
mod tests;
