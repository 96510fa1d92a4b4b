//! Containers by Apptainer. The sandbox has a stand-in of it, which checks the command line and refuses other options.

use super::*;

/// A file of the sandbox, which Apptainer reads as it is.
const FILE: &str = "/lustre/images/tao-toolkit.sqsh";

/// A command in a container of Apptainer, on two nodes.
fn contained(image: &str, text: &str) -> Value {
    let mut job = command(text);
    job["image"] = image.into();
    job["container"] = json!({"runtime": "apptainer"});
    job["resources"]["num_nodes"] = 2.into();
    job["retry"] = json!({"max_retries": 0});
    job
}

#[test]
fn a_job_has_its_variables_its_mounts_and_its_nodes_in_a_container_of_apptainer() {
    let service = Service::start();
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let mut job = contained(
        FILE,
        "grep -q '^ID=tao-sandbox$' /etc/os-release
         [ \"$A\" = \"$(printf 'two\\nlines')\" ] && [ \"$B\" = secret ] && [ \"$PATH\" != \"${PATH#/usr/local/sbin}\" ]
         { ! touch /read-only/new; } 2>/dev/null
         cat \"/read-only/$NODE_RANK\" >\"$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/of-$NODE_RANK\"",
    );
    service.sandbox.login(&format!(
        "mkdir -p {base}/data-apptainer; cd {base}/data-apptainer; echo zero >0; echo one >1"
    ));
    job["docker_env_vars"] = json!({"A": "two\nlines"});
    job["secret_env_vars"] = json!({"B": "secret"});
    job["container"]["mounts"] = json!([format!("{base}/data-apptainer:/read-only:ro")]);
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let found = service.sandbox.login(&format!("cat {base}/results/{id}/of-0 {base}/results/{id}/of-1"));
    assert_eq!(found, "zero\none");
    assert_eq!(service.get(&format!("/jobs/{id}")).json()["container"]["runtime"], "apptainer");

    let ended = service.wait_ended(&service.submit(&contained(FILE, "exit 7")));
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("The job exited with code 7"), "{ended}");
}

#[test]
fn apptainer_pulls_the_image_of_a_registry_itself_and_its_refusals_are_explained() {
    let mut site = Site::new();
    let name = site.name("pulled");
    let image = site.push(&name, "1");
    let ended = site
        .service
        .wait_ended(&site.service.submit(&contained(&image, "grep -q tao-sandbox /etc/os-release")));
    assert_eq!(ended["status"], "Done", "{ended}");
    assert!(site.files().is_empty(), "it is not converted");

    let refused = [
        (image.replace(":1", ":2"), "the image does not exist in its registry"),
        (site.guarded(), "the registry requires valid credentials for the image"),
        ("/etc/passwd".to_owned(), "the file of the image is damaged"),
    ];
    for (image, why) in refused {
        let ended = site.service.wait_ended(&site.service.submit(&contained(&image, "true")));
        let message = ended["message"].as_str().unwrap();
        assert_eq!(ended["status"], "Error", "{ended}");
        assert!(message.contains(&format!("Not retried: {why}")), "{message}");
    }
}

#[test]
fn a_canceled_job_leaves_no_container_of_apptainer() {
    let service = Service::start();
    let (id, _) = crate::states::running(&service, &contained(FILE, "exec sleep 4321"));
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), "").status, 202);
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
    until("its processes to end", Duration::from_mins(1), || {
        let sleeps = |line: &[u8]| line.starts_with(b"sleep\x004321\x00");
        let lines = fs::read_dir("/proc").unwrap().flatten();
        !lines.filter_map(|process| fs::read(process.path().join("cmdline")).ok()).any(|line| sleeps(&line))
    });
}
