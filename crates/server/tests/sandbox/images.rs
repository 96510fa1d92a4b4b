//! Registry images, converted once and run from the cache.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    cluster::sql,
    ending::command,
    service::{Service, until},
};

mod apptainer;
mod unusable;

/// A service with its own cache, and its own images in the registry.
pub(crate) struct Site {
    pub(crate) service: Service,
    /// The cache as the cluster sees it.
    cache: String,
    registry: PathBuf,
    made: Vec<PathBuf>,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    fn with(changed: &[(&str, &str)]) -> Self {
        let mut service = Service::prepare(changed);
        let (_, port) = service.url.rsplit_once(':').unwrap();
        let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
        let cache = format!("{base}/sqsh-{}-{port}", std::process::id());
        let registry = PathBuf::from(service.sandbox.var("SANDBOX_DIR")).join("registry/registry.sandbox");
        service.set("SLURM_SQSH_CACHE_DIR", &cache);
        service.spawn();
        Self { service, cache, registry, made: Vec::new() }
    }

    /// Pushes the test image under another name.
    pub(crate) fn push(&mut self, repository: &str, tag: &str) -> String {
        let place = self.registry.join(repository).join(tag);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let image = self.registry.join("nvidia/tao/tao-toolkit/6.26.3-pyt");
        let _ = fs::remove_dir_all(&place);
        let copied = Command::new("cp").arg("-al").arg(image).arg(&place).status().unwrap();
        assert!(copied.success());
        self.made.push(place);
        format!("registry.sandbox/{repository}:{tag}")
    }

    /// As `push`, and each download of it waits for the release.
    pub(crate) fn push_held(&mut self, repository: &str) -> String {
        let image = self.push(repository, "1");
        fs::write(self.registry.join(repository).join("1.held"), "").unwrap();
        image
    }

    /// Lets the downloads go on.
    pub(crate) fn release(&self) {
        for place in &self.made {
            let _ = fs::remove_file(place.with_extension("held"));
        }
    }

    /// An image name that no other test uses.
    pub(crate) fn name(&self, what: &str) -> String {
        let (_, dir) = self.cache.rsplit_once('/').unwrap();
        format!("test/{dir}/{what}")
    }

    fn submit(&self, image: &str, container: &Value) -> String {
        let mut job = command("cat /etc/os-release");
        job["image"] = image.into();
        job["container"] = container.clone();
        self.service.submit(&job)
    }

    /// The Slurm jobs of all conversions of this database: id and state.
    fn conversions(&self) -> Vec<String> {
        let ids = sql(&self.service.database_url, "select id from jobs where owner = ''");
        let rows = self.service.sandbox.login("sacct -X -n -P -o JobIDRaw,JobName,State -S now-1hours");
        let ours = |row: &&str| ids.lines().any(|id| row.contains(&format!("tao-job-{id}")));
        rows.lines().filter(ours).map(str::to_owned).collect()
    }

    /// The conversions, once accounting shows `count` of them.
    fn conversions_of(&self, count: usize) -> Vec<String> {
        until("accounting to show the conversions", Duration::from_secs(30), || {
            self.conversions().len() >= count
        });
        let found = self.conversions();
        assert_eq!(found.len(), count, "{found:?}");
        found
    }

    fn files(&self) -> Vec<String> {
        let list = self.service.sandbox.login(&format!("ls -A {} 2>/dev/null || true", self.cache));
        list.lines().filter(|name| *name != ".enroot-tmp").map(str::to_owned).collect()
    }

    fn launched_with(&self, id: &str) -> Value {
        self.service.get(&format!("/jobs/{id}")).json()["attempt_details"].clone()
    }

    fn converting(&self, id: &str) -> Value {
        self.service.wait(id, "a conversion", |status| {
            status["phase"] == "converting_image"
                && status["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(" has been converting the image "))
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.release();
        for place in &self.made {
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// A second worker process on the same database.
struct SecondWorker(Child);

impl SecondWorker {
    fn of(service: &Service) -> Self {
        let log = fs::OpenOptions::new().create(true).append(true).open(&service.log).unwrap();
        let mut command = service.command(&["serve", "--role", "worker"]);
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

impl Drop for SecondWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ten_jobs_of_a_new_image_and_two_workers_are_one_conversion() {
    let mut site = Site::new();
    let image = site.push_held(&site.name("many"));
    let _second = SecondWorker::of(&site.service);
    let ids: Vec<_> = (0..10).map(|_| site.submit(&image, &json!({}))).collect();
    site.converting(&ids[3]);
    site.release();
    for id in &ids {
        assert_eq!(site.service.wait_ended(id)["status"], "Done");
        let launched = site.launched_with(id);
        assert!(launched["images"][0]["image"].as_str().unwrap().starts_with(&site.cache), "{launched}");
        assert_eq!(launched["images"][0]["note"], Value::Null);
    }
    assert!(site.conversions_of(1)[0].contains("COMPLETED"));
    assert_eq!(site.files().len(), 1, "{:?}", site.files());
}

#[test]
fn a_conversion_continues_after_the_service_was_killed() {
    let mut site = Site::new();
    let image = site.push_held(&site.name("restart"));
    let id = site.submit(&image, &json!({"require_sqsh": true}));
    site.converting(&id);
    site.service.kill();
    site.service.spawn();
    site.release();
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    site.conversions_of(1);
}

#[test]
fn a_service_killed_during_a_submission_converts_once() {
    let mut site = Site::new();
    let image = site.push(&site.name("killed"), "1");
    let id = site.submit(&image, &json!({"require_sqsh": true}));
    let looked =
        || sql(&site.service.database_url, "select count(*) from jobs where owner = '' and attempt > 0");
    until("the intent", Duration::from_secs(30), || looked() == "1");
    site.service.kill();
    site.service.spawn();
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    site.conversions_of(1);
}

#[test]
fn a_missing_image_is_an_error_with_enroots_message_and_takes_no_node() {
    let mut site = Site::new();
    let (there, missing) = (site.push(&site.name("missing"), "1"), site.name("missing"));
    let missing = format!("registry.sandbox/{missing}:2");
    let strict = site.submit(&missing, &json!({"require_sqsh": true}));
    let ended = site.service.wait_ended(&strict);
    assert_eq!(ended["status"], "Error");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("404 Not Found"), "{message}");
    assert_eq!(ended["slurm_job_id"], Value::Null, "it was never submitted");

    // The next job asks the registry again, because the image may have been pushed since.
    let usual = site.service.wait_ended(&site.submit(&missing, &json!({})));
    let message = usual["message"].as_str().unwrap();
    assert!(message.contains("the image does not exist in its registry. Job "), "{message}");
    assert_eq!(usual["slurm_job_id"], Value::Null, "it was never submitted either");
    site.conversions_of(2);
    assert_eq!(site.files(), Vec::<String>::new(), "no part of an image is left");

    // Without the cache a node has to find out.
    let plain = site.service.wait_ended(&site.submit(&missing, &json!({"use_sqsh": false})));
    let message = plain["message"].as_str().unwrap();
    assert!(message.contains("Not retried: the image does not exist in its registry."), "{message}");
    assert!(message.contains("404 Not Found"), "{message}");

    let other = site.submit(&there, &json!({"require_sqsh": true}));
    assert_eq!(site.service.wait_ended(&other)["status"], "Done", "other images are not delayed");
}

#[test]
fn an_invalid_conversion_partition_is_reported_and_the_job_runs_from_the_registry() {
    let mut site = Site::with(&[("SLURM_CONVERSION_PARTITION", "nosuch")]);
    let image = site.push(&site.name("partition"), "1");
    let id = site.submit(&image, &json!({}));
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    let launched = site.launched_with(&id);
    assert!(launched["images"][0]["note"].as_str().unwrap().contains("invalid partition"), "{launched}");
    let strict = site.submit(&image, &json!({"require_sqsh": true}));
    let ended = site.service.wait_ended(&strict);
    assert!(ended["message"].as_str().unwrap().contains("invalid partition"), "{ended}");
}

#[test]
fn a_complete_image_file_is_reused_and_an_incomplete_one_is_converted_again() {
    let mut site = Site::new();
    let image = site.push(&site.name("cached"), "1");
    let id = site.submit(&image, &json!({}));
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    let file = format!("{}/{}", site.cache, site.files()[0]);
    let inode = |site: &Site| site.service.sandbox.login(&format!("stat -c %i '{file}'"));
    let (first, forget) = (inode(&site), "delete from cached_images; delete from jobs where owner = ''");
    sql(&site.service.database_url, forget);
    let id = site.submit(&image, &json!({"require_sqsh": true}));
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    assert_eq!((inode(&site), site.conversions()), (first.clone(), vec![]), "nothing was converted");

    site.service.sandbox.login(&format!("truncate -s 100 '{file}'"));
    sql(&site.service.database_url, forget);
    let id = site.submit(&image, &json!({"require_sqsh": true}));
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
    assert_ne!(inode(&site), first);
    site.conversions_of(1);
}

#[test]
fn images_with_similar_names_have_separate_files() {
    let mut site = Site::new();
    let (one, other) = (site.name("a/b_c"), site.name("a/b/c"));
    let ids: Vec<_> = [one, other]
        .iter()
        .map(|name| {
            let image = site.push(name, "1");
            site.submit(&image, &json!({"require_sqsh": true}))
        })
        .collect();
    for id in &ids {
        assert_eq!(site.service.wait_ended(id)["status"], "Done");
    }
    assert_ne!(site.launched_with(&ids[0])["images"], site.launched_with(&ids[1])["images"]);
    assert_eq!(site.files().len(), 2);
    site.conversions_of(2);
}

#[test]
fn a_moved_tag_is_converted_again_beside_the_old_file_only_on_request() {
    let mut site = Site::new();
    let image = site.push(&site.name("moving"), "latest");
    let (image, _) = image.rsplit_once(':').unwrap();
    let first = site.submit(image, &json!({}));
    assert_eq!(site.service.wait_ended(&first)["status"], "Done");
    let second = site.submit(image, &json!({}));
    assert_eq!(site.service.wait_ended(&second)["status"], "Done");
    site.conversions_of(1);
    let fresh: Vec<_> =
        (0..3).map(|_| site.submit(image, &json!({"force_reconvert_latest": true}))).collect();
    for id in &fresh {
        assert_eq!(site.service.wait_ended(id)["status"], "Done");
        assert_ne!(site.launched_with(id)["images"], site.launched_with(&first)["images"]);
    }
    let files = site.files();
    assert!(
        files.len() == 2 || files.len() == 3,
        "the old file is still there, and at most two waves are: {files:?}"
    );
    site.conversions_of(files.len());
}

#[test]
fn a_job_canceled_during_its_conversion_ends_at_once_and_an_unneeded_conversion_too() {
    let mut site = Site::new();
    let image = site.push_held(&site.name("canceled"));
    let (first, second) = (site.submit(&image, &json!({})), site.submit(&image, &json!({})));
    site.converting(&first);
    site.service.post(&format!("/jobs/{first}/cancel"), "");
    assert_eq!(site.service.wait_ended(&first)["status"], "Canceled");
    site.converting(&second);
    assert!(!site.conversions_of(1)[0].contains("CANCELLED"), "the other job still needs it");

    site.service.post(&format!("/jobs/{second}/cancel"), "");
    assert_eq!(site.service.wait_ended(&second)["status"], "Canceled");
    until("the conversion to be canceled", Duration::from_mins(1), || {
        site.conversions_of(1)[0].contains("CANCELLED")
    });
    until("its files to be gone", Duration::from_mins(1), || site.files().is_empty());
}
