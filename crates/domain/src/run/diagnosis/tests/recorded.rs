//! Logs of failed containers as Pyxis and Enroot print them.

use test_case::test_case;

use super::*;

/// The lines around the log of Enroot when no file system could be created for the container.
fn failed_create(enroot: &str) -> String {
    let log = enroot.replace('\n', "\nslurmstepd-node01: error: pyxis:     ");
    format!(
        "\
slurmstepd-node01: error: pyxis: child 4032 failed with error code: 1
slurmstepd-node01: error: pyxis: failed to create container filesystem for image: /lustre/images/tao.sqsh
slurmstepd-node01: error: pyxis: printing enroot log file:
srun: error: node01: task 0: Exited with exit code 1
slurmstepd-node01: error: pyxis:     {log}
slurmstepd-node01: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd-node01: error: Failed to invoke spank plugin stack
slurmstepd-node01: error: pyxis: child 4048 failed with error code: 1
"
    )
}

/// The lines around the log of Enroot when the container did not start.
fn failed_start(enroot: &str) -> String {
    format!(
        "\
slurmstepd-node02: error: pyxis: container start failed with error code: 1
srun: error: node02: task 1: Exited with exit code 1
slurmstepd-node02: error: pyxis: printing enroot log file:
slurmstepd-node02: error: pyxis:     {enroot}
slurmstepd-node02: error: pyxis: container was not started successfully by another task
slurmstepd-node02: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd-node02: error: Failed to invoke spank plugin stack
"
    )
}

fn judged(found: &Diagnosis) -> (Cause, &str) {
    (found.cause, found.signature.as_str())
}

const UNSQUASHFS: &str = "\
[INFO] Extracting squashfs filesystem...
Parallel unsquashfs: Using 2 processors
272 inodes (19 blocks) to write
lzo uncompress failed with error code -6";

#[test_case("[ERROR] No such file or directory: /lustre/images/tao.sqsh", "image-file-missing"; "missing")]
#[test_case("[ERROR] No such file or directory: /lustre/images/tao-toolkit", "image-file-missing"; "a name without sqsh")]
#[test_case("[ERROR] Invalid image format: /lustre/images/tao.sqsh", "image-file-damaged"; "not an image, or unreadable")]
#[test_case("FATAL ERROR: Can't find a valid SQUASHFS superblock on /lustre/images/tao.sqsh", "image-file-damaged"; "truncated")]
#[test_case(UNSQUASHFS, "image-file-damaged"; "damaged in the middle")]
fn a_file_of_an_image_is_the_fault_of_the_job_only_if_the_job_names_it(enroot: &str, rule: &str) {
    let log = failed_create(enroot);
    for (image, cause) in [
        (ImageSource::OwnFile, Cause::User),
        (ImageSource::CachedFile, Cause::CachedFile),
        (ImageSource::Elsewhere, Cause::Infrastructure),
    ] {
        let found = with_image(&log, image).unwrap();
        assert_eq!(judged(&found), (cause, rule), "{image:?}");
        let line = found.line.unwrap();
        assert!(line.ends_with(enroot.lines().last().unwrap()), "{line}");
    }
}

#[test]
fn a_full_disk_of_the_node_does_not_damage_the_image() {
    let log =
        failed_create("FATAL ERROR: writer: failed to write data block, because No space left on device");
    let found = with_image(&log, ImageSource::CachedFile).unwrap();
    assert_eq!(judged(&found), (Cause::Infrastructure, "node-disk"));
}

#[test_case("[INFO] Authenticating with user: <anonymous>")]
#[test_case("[INFO] Using credentials from file: /home/tao/.config/enroot/.credentials")]
fn a_registry_with_basic_authentication_refuses_without_an_error(last: &str) {
    let log = failed_create(&format!("[INFO] Querying registry for permission grant\n{last}"));
    let found = of_log(&log).unwrap();
    assert_eq!(judged(&found), (Cause::User, "registry-login"));
    assert!(found.line.unwrap().ends_with(last));
}

#[test_case("[INFO] Authentication succeeded\n[INFO] Fetching image manifest list\ncurl: (56) Recv failure: Connection reset by peer"; "a download that broke")]
#[test_case("curl: (28) Connection timed out after 30000 milliseconds"; "a token service without an answer")]
#[test_case("[INFO] Authentication succeeded\n[INFO] Fetching image manifest\nChecksum mismatch: a3ed95caeb02"; "a checksum")]
fn a_login_that_something_else_follows_is_not_refused(then: &str) {
    let log = failed_create(&format!("[INFO] Authenticating with user: <anonymous>\n{then}"));
    assert_eq!(judged(&of_log(&log).unwrap()), (Cause::Infrastructure, "image-pull"));
}

#[test_case("enroot-mount: failed to mount: /lustre/a at /var/tmp/pyxis_9.0/data: Not a directory", Cause::User, "mount-failed"; "a mount of the job")]
#[test_case("enroot-mount: failed to mount: /lustre/a at /var/tmp/pyxis_9.0/data: Input/output error", Cause::Infrastructure, "file-system"; "a file server")]
#[test_case("enroot-mount: failed to create directory: /var/tmp/pyxis_9.0/bin/sh/x: Not a directory", Cause::User, "mount-failed"; "an impossible target")]
#[test_case("exec: sh: not found", Cause::User, "command-missing"; "its shell")]
#[test_case("enroot-mount: failed to mount: /dev/nvidia0 at /var/tmp/pyxis_9.0/dev/nvidia0: No such file or directory", Cause::Infrastructure, "container-mount"; "a device of the node")]
#[test_case("enroot-mount: failed to create directory: /var/tmp/pyxis_9.0/sys/fs/cgroup/systemd: Permission denied", Cause::Infrastructure, "container-mount"; "a directory of the node")]
#[test_case("/etc/rc: 13: exec: python: not found", Cause::User, "command-missing"; "the program")]
fn a_container_that_did_not_start_is_not_always_the_image(enroot: &str, cause: Cause, rule: &str) {
    let found = of_log(&failed_start(enroot)).unwrap();
    assert_eq!(judged(&found), (cause, rule));
    assert!(found.line.unwrap().ends_with(enroot));
}

#[test]
fn a_container_that_did_not_start_for_an_unknown_reason_is_retried() {
    let found = of_log(&failed_start("enroot: something new")).unwrap();
    assert_eq!(judged(&found), (Cause::Infrastructure, "container-start"));
}

#[test_case("[ERROR] Could not process JSON input"; "a page of a proxy")]
#[test_case("[INFO] Authentication succeeded\n[INFO] Fetching image manifest list\n[ERROR] Could not process JSON input"; "an old Enroot and ECR")]
#[test_case("[ERROR] URL https://r.io/v2/a/b/manifests/1 returned error code: 503 Service Unavailable\n[ERROR] Could not process JSON input"; "a page with a status")]
fn an_answer_that_is_not_json_may_pass(enroot: &str) {
    let log = failed_create(&format!("[INFO] Authenticating with user: <anonymous>\n{enroot}"));
    assert_eq!(of_log(&log).unwrap().cause, Cause::Infrastructure);
}

#[test]
fn a_refused_login_is_one_whatever_its_page() {
    let refused = "[ERROR] URL https://r.io/token returned error code: 401 Unauthorized";
    let log = failed_create(&format!("[ERROR] Could not process JSON input\n{refused}"));
    assert_eq!(judged(&of_log(&log).unwrap()), (Cause::User, "registry-credentials"));
}

#[test]
fn a_certificate_that_is_not_trusted_is_not_retried() {
    let log = failed_create("curl: (60) SSL certificate problem: self-signed certificate");
    assert_eq!(judged(&of_log(&log).unwrap()), (Cause::User, "certificate"));
}

#[test]
fn a_step_that_slurm_killed_for_its_memory_is_the_fault_of_the_job() {
    let log = "slurmstepd: error: Exceeded job memory limit\nsrun: error: node01: task 0: Killed\n";
    assert_eq!(judged(&of_log(log).unwrap()), (Cause::User, "memory-limit"));
}

#[test_case("enroot import exited with code 1: [ERROR] URL https://r.io/v2/a/b/manifests/1 returned error code: 404 Not Found" => true; "no image")]
#[test_case("enroot import exited with code 22: [INFO] Authenticating with user: <anonymous>" => true; "a login")]
#[test_case("enroot import exited with code 1: [ERROR] URL https://r.io/token returned error code: 401 Unauthorized" => true; "a token")]
#[test_case("enroot import exited with code 6: curl: (6) Could not resolve host: r.io" => false; "no answer")]
#[test_case("enroot import exited with code 1: [ERROR] URL https://r.io/v2/a/b/blobs/x returned error code: 503 Service Unavailable" => false; "an outage")]
#[test_case("enroot import exited with code 1: [ERROR] Could not process JSON input" => false; "a page of a proxy")]
#[test_case("its Slurm job was canceled on the cluster" => false; "a cancellation")]
fn only_an_answer_of_the_registry_is_a_refusal(error: &str) -> bool {
    registry_refusal(error).is_some()
}
