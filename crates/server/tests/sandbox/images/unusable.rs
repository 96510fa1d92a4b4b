//! Images that the registry refuses, and cached files that a job cannot use.

use super::*;

impl Site {
    /// A registry that wants a login. Returns an image of it.
    pub(super) fn guarded(&mut self) -> String {
        let host = format!("guarded-{}.sandbox", self.service.url.rsplit_once(':').unwrap().1);
        let place = self.registry.with_file_name(&host);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(".auth"), "Basic ann secret\n").unwrap();
        self.made.push(place);
        format!("{host}/team/image:1")
    }

    /// A job has run from the cache: the service trusts its file. Returns its path.
    fn cached(&self, image: &str) -> String {
        let id = self.submit(image, &json!({"require_sqsh": true}));
        assert_eq!(self.service.wait_ended(&id)["status"], "Done");
        format!("{}/{}", self.cache, self.files()[0])
    }

    /// The job is retried once, with a file of another conversion, and runs. Returns that file.
    fn runs_at_the_second_attempt(&self, image: &str) -> String {
        let id = self.submit(image, &json!({"require_sqsh": true}));
        let ended = self.service.wait_ended(&id);
        assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(1)), "{ended}");
        self.conversions_of(2);
        let launched = self.launched_with(&id);
        assert_eq!(launched["excluded_nodes"], json!([]), "no node is at fault: {launched}");
        launched["images"][0]["image"].as_str().unwrap().to_owned()
    }
}

const SOON: (&str, &str) = ("TAO_SLURM_RETRY_WAIT", "1s");

#[test]
fn a_registry_that_wants_a_login_is_named_before_a_node_is_taken_and_on_a_node() {
    let mut site = Site::new();
    let image = site.guarded();
    let ended = site.service.wait_ended(&site.submit(&image, &json!({})));
    let message = ended["message"].as_str().unwrap();
    assert_eq!((&ended["status"], &ended["slurm_job_id"]), (&json!("Error"), &Value::Null), "{ended}");
    assert!(message.contains("the registry refuses the login for the image"), "{message}");
    assert!(message.contains("[INFO] Authenticating with user: <anonymous>"), "{message}");

    let ended = site.service.wait_ended(&site.submit(&image, &json!({"use_sqsh": false})));
    let message = ended["message"].as_str().unwrap();
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Error"), &json!(0)), "{ended}");
    assert!(message.contains("Not retried: the registry refuses the login for the image"), "{message}");
    assert!(message.contains("[INFO] Authenticating with user: <anonymous>"), "{message}");
}

#[test]
fn a_cached_file_that_is_purged_a_moment_after_its_use_is_converted_again() {
    let mut site = Site::with(&[SOON]);
    let image = site.push(&site.name("purged"), "1");
    let file = site.cached(&image);
    site.service.sandbox.login(&format!("rm '{file}'"));
    assert_eq!(site.runs_at_the_second_attempt(&image), file);
}

#[test]
fn a_cached_file_that_is_damaged_is_converted_again_beside_the_old_one() {
    let mut site = Site::with(&[SOON]);
    let image = site.push(&site.name("damaged"), "1");
    let file = site.cached(&image);
    // The table of inodes, whose place is in bytes 64 to 71: superblock and length stay as they are.
    site.service.sandbox.login(&format!(
        "at=$(od -A n -t u8 -j 64 -N 8 '{file}') && dd if=/dev/zero of='{file}' bs=1 seek=$((at + 2)) count=300 conv=notrunc 2>/dev/null"
    ));
    let another = site.runs_at_the_second_attempt(&image);
    assert_ne!(another, file);
    let id = site.submit(&image, &json!({}));
    assert_eq!(site.service.wait_ended(&id)["retry_count"], 0);
    assert_eq!(
        site.launched_with(&id)["images"][0]["image"],
        another.as_str(),
        "nobody gets the damaged file again"
    );
}

#[test]
fn a_download_that_arrives_damaged_is_tried_again_by_a_conversion_and_on_a_node() {
    let mut site = Site::with(&[SOON]);
    let image = site.push(&site.name("torn"), "1");
    let torn = site.made[0].with_extension("fails");
    fs::write(&torn, "checksum\n").unwrap();
    let id = site.submit(&image, &json!({"require_sqsh": true}));
    let again =
        || sql(&site.service.database_url, "select count(*) from jobs where owner = '' and attempt > 1");
    until("the conversion's second attempt", Duration::from_mins(1), || again() == "1");
    fs::remove_file(&torn).unwrap();
    let ended = site.service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(0)), "{ended}");

    fs::write(&torn, "checksum\n").unwrap();
    let id = site.submit(&image, &json!({"use_sqsh": false}));
    site.service.wait(&id, "its second attempt", |status| status["retry_count"] == 1);
    fs::remove_file(&torn).unwrap();
    assert_eq!(site.service.wait_ended(&id)["status"], "Done");
}

#[test]
fn the_damaged_file_of_a_later_step_is_converted_again() {
    let mut site = Site::with(&[SOON]);
    let image = site.push(&site.name("second"), "1");
    let file = site.cached(&image);
    // Only the program's own image is damaged; the step before has begun on the node.
    site.service.sandbox.login(&format!("truncate -s 100 '{file}'"));
    let mut job = command("");
    job.as_object_mut().unwrap().remove("command");
    job["image"] = image.as_str().into();
    job["container"] = json!({"require_sqsh": true});
    job["steps"] = json!([
        {"name": "prepare", "command": "echo prepared", "on_node": true},
        {"name": "score", "command": "echo scored"},
    ]);
    let ended = site.service.wait_ended(&site.service.submit(&job));
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(1)), "{ended}");
    site.conversions_of(2);
}

#[test]
fn a_program_that_prints_the_words_of_pyxis_does_not_touch_the_cache() {
    let mut site = Site::with(&[SOON]);
    let image = site.push(&site.name("forged"), "1");
    let file = site.cached(&image);
    let line = "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/x";
    let mut job = command(&format!("echo '{line}' >&2; exit 1"));
    job["image"] = image.as_str().into();
    job["container"] = json!({"require_sqsh": true});
    let id = site.service.submit(&job);
    let ended = site.service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Error"), &json!(0)), "{ended}");
    assert_eq!(site.launched_with(&id)["images"][0]["image"], file.as_str(), "it ran from the cache");
}

#[test]
fn the_message_names_the_mount_that_does_not_exist() {
    let site = Site::new();
    let mut job = command("true");
    job["image"] = "/lustre/images/tao-toolkit.sqsh".into();
    job["container"] = json!({"mounts": ["/nope-at-all:/data"]});
    let ended = site.service.wait_ended(&site.service.submit(&job));
    let message = ended["message"].as_str().unwrap();
    assert!(
        message.contains("does not exist on the cluster, or is not readable: /nope-at-all."),
        "{message}"
    );
    assert_eq!(ended["slurm_job_id"], Value::Null, "{ended}");
    // What is below its own directory the service does not look for: the job may make it.
    let own = format!("{}/nope-at-all", site.service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
    job["container"] = json!({"mounts": [format!("{own}:/data")]});
    let ended = site.service.wait_ended(&site.service.submit(&job));
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("Not retried: a path to mount into the container does not exist."), "{message}");
    assert!(
        message.contains(&format!("pyxis: --container-mounts: source path does not exist: {own}")),
        "{message}"
    );
    assert!(!message.contains("spank:"), "{message}");
}

#[test]
fn the_message_of_a_step_that_slurm_killed_for_its_memory_says_so() {
    let site = Site::new();
    let text = "srun --overlap -n1 --mem=50M bash -c 'head -c 400M /dev/zero | tail -c 300M | sleep 600'";
    let ended = site.service.wait_ended(&site.service.submit(&command(text)));
    let message = ended["message"].as_str().unwrap();
    assert_eq!(ended["status"], "Error", "{ended}");
    assert!(message.contains("Not retried: the job used more memory than it requested."), "{message}");
}
