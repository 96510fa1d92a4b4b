use serde_json::json;
use test_case::test_case;

use super::*;

fn examined(mut specs: Value) -> (Value, Vec<String>, Vec<String>) {
    let mounts = ["/lustre".parse().unwrap(), "/lustre/data/coco:/data:ro".parse().unwrap()];
    let examined = examine(&mut specs, "/specs", &mounts);
    let required = examined.required.iter().map(ToString::to_string).collect();
    let faults = examined.faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
    (specs, required, faults)
}

#[test]
fn uris_become_paths_at_any_depth_and_nowhere_inside_a_text() {
    let (specs, ..) = examined(json!({
        "train": {"dataset": ["lustre:///lustre/a", 3, {"x": "slurm://None/lustre/b/"}]},
        "note": "see lustre:///x", "lustre:///key": true,
    }));
    assert_eq!(
        specs,
        json!({
            "train": {"dataset": ["/lustre/a", 3, {"x": "/lustre/b/"}]},
            "note": "see lustre:///x", "lustre:///key": true,
        })
    );
}

// The shapes that the networks of TAO have.
#[test_case(json!({"dataset": "lustre:///lustre/a"}), &["/lustre/a"] ; "a data set's root")]
#[test_case(json!({"train": {"dataset": "/lustre/a"}}), &["/lustre/a"] ; "a path")]
#[test_case(json!({"dataset": {"train_data_sources": [{"image_dir": "/lustre/i", "json_file": "lustre:///lustre/j.json"}]}}), &["/lustre/i", "/lustre/j.json"] ; "a list of sources")]
#[test_case(json!({"dataset": {"segment": {"root_dir": "/lustre/s"}}}), &["/lustre/s"] ; "a root below")]
#[test_case(json!({"dataset": {"train_dataset": {"images_dir": "/lustre/t"}, "augmentation": {"mean": [0.1]}}}), &["/lustre/t"] ; "settings beside it")]
#[test_case(json!({"custom": {"train_dataset": {"annotation_path": "/lustre/ann.json", "media_path": "/lustre/media"}}}), &["/lustre/ann.json", "/lustre/media"] ; "annotations and media")]
#[test_case(json!({"train_datasets": ["/lustre/a", "/lustre/b"]}), &["/lustre/a", "/lustre/b"] ; "several")]
#[test_case(json!({"dataset": {"data_root": "/data/train"}}), &["/lustre/data/coco/train"] ; "a path of the container, where it lies on the cluster")]
#[test_case(json!({"dataset": {"data_root": "/workspace/in/the/image"}}), &[] ; "a path of the image")]
#[test_case(json!({"dataset": {"data_path": "lustre:///lustre/shards/{000..099}.tar"}}), &["/lustre/shards"] ; "a pattern")]
#[test_case(json!({"dataset": {"classmap": "/lustre/c.txt"}, "model": {"pretrained_model_path": "lustre:///lustre/m.pth"}, "train": {"resume_training_checkpoint_path": "/lustre/none.pth"}}), &[] ; "small ones, and those that the job makes")]
#[test_case(json!({"results_dir": "lustre:///lustre/out", "export": {"onnx_file": "/lustre/x.onnx"}}), &[] ; "no data at all")]
#[test_case(json!({"dataset": {"train": {"img_dir": ""}, "type": "coco", "num_classes": 3, "csv_path": null, "data_path": "???"}}), &[] ; "nothing yet")]
fn the_paths_of_data_sets_must_exist(specs: Value, required: &[&str]) {
    let (_, found, faults) = examined(specs);
    assert_eq!(found, required);
    assert_eq!(faults, Vec::<String>::new());
}

#[test_case(json!({"train": {"dataset": "file:///home/me/a"}}), "/specs/train/dataset local_path" ; "a file")]
#[test_case(json!({"train_datasets": ["local:///a"]}), "/specs/train_datasets/0 local_path" ; "local")]
#[test_case(json!({"dataset": {"train": {"img_dir": "images/train"}}}), "/specs/dataset/train/img_dir local_path" ; "a relative directory")]
#[test_case(json!({"annotation_path": "annotations.json"}), "/specs/annotation_path local_path" ; "a bare name")]
#[test_case(json!({"dataset": {"data_root": "~/data"}}), "/specs/dataset/data_root local_path" ; "a home that nobody knows")]
#[test_case(json!({"dataset": {"data_root": "s3://bucket/a"}}), "/specs/dataset/data_root remote_data" ; "an object store")]
#[test_case(json!({"dataset": {"train_data_sources": [{"tfrecords_path": "aws://b/a"}]}}), "/specs/dataset/train_data_sources/0/tfrecords_path remote_data" ; "another name of it")]
#[test_case(json!({"dataset": "azure://b/a"}), "/specs/dataset remote_data" ; "azure")]
#[test_case(json!({"dataset": "seaweedfs://b/a"}), "/specs/dataset remote_data" ; "seaweedfs")]
#[test_case(json!({"eval_dataset": "hf_dataset://org/name"}), "/specs/eval_dataset remote_data" ; "a hub")]
#[test_case(json!({"dataset": "https://example.org/a.tar"}), "/specs/dataset remote_data" ; "a web server")]
#[test_case(json!({"dataset": "/lustre/../etc"}), "/specs/dataset invalid" ; "a path that climbs")]
#[test_case(json!({"dataset": "lustre://rel/a"}), "/specs/dataset invalid" ; "two slashes")]
#[test_case(json!({"x": {"a/b~": "lustre://rel"}}), "/specs/x/a~1b~0 invalid" ; "a bad URI anywhere")]
fn data_that_the_cluster_cannot_reach_are_refused(specs: Value, fault: &str) {
    assert_eq!(examined(specs).2, [fault]);
}

#[test_case(json!({"dataset": {"data_root": "/lustre/d", "train": {"img_dir": "images/train", "ann_file": "a.json"}}}) ; "relative to a root")]
#[test_case(json!({"dataset": {"val_dataset_dir": "${dataset.root}/val"}}) ; "a value to be filled in")]
#[test_case(json!({"model": {"pretrained_model_path": "s3://bucket/m.pth"}, "dataset": {"label_map": "https://example.org/l.txt"}}) ; "small ones may be remote")]
#[test_case(json!({"dataset": {"name": "coco", "format": "kitti"}, "train": {"dataset": "coco"}}) ; "a name")]
#[test_case(json!({"wandb": {"url": "https://example.org"}, "telemetry": "file:///x"}) ; "no data")]
fn what_is_no_place_of_data_is_left_alone(specs: Value) {
    assert_eq!(examined(specs).2, Vec::<String>::new());
}
