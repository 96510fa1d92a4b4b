//! A new job with the settings of another one.

use super::{
    answers,
    fake_api::{FakeApi, JOB, get, logged_in},
};

#[tokio::test]
async fn a_copy_has_all_that_the_answer_has_and_names_the_rest() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let page = get(&console, &format!("/ui/new?from={JOB}"), &[("cookie", &cookie)]).await;
    let text = page.text.split("<textarea").nth(1).and_then(|rest| rest.split("</textarea").next()).unwrap();
    let resources = &answers::job()["resources"];
    for (name, value) in [("gpu_type", "&quot;a100&quot;"), ("cpus_per_task", "4")] {
        assert!(
            !resources[name].is_null() && text.contains(&format!("{name}&quot;: {value}")),
            "{name}: {text}"
        );
    }
    assert!(text.contains("accuracy") && text.contains("max_retries"), "{text}");
    assert!(!text.contains("total_gpus") && !text.contains("slurm_metadata"), "{text}");
    for left_out in ["HF_TOKEN", "config.yaml", "The array", "services", "A webhook"] {
        assert!(page.text.contains(left_out), "{left_out}: {}", page.text);
    }
}
