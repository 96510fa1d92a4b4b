use slurm::{Cancel, Cancelled, FailureClass};

use crate::site::{Site, id, name};

#[test]
fn ids_go_five_hundred_at_a_time_and_names_one_by_one() {
    let site = Site::new();
    let cancel = Cancel { ids: (1..=1001).map(id).collect(), names: vec![name("a"), name("b")] };
    assert_eq!(site.run(&cancel), Cancelled { refused: None });
    let calls = site.read("scancel.calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 5);
    assert_eq!(calls[0].split(' ').count(), 500);
    assert_eq!(calls[2], "1001");
    assert_eq!(&calls[3..], ["--me -n a", "--me -n b"]);
}

#[test]
fn nothing_to_cancel_is_a_success() {
    assert_eq!(Site::new().run(&Cancel::default()), Cancelled { refused: None });
}

#[test]
fn what_is_over_counts_as_cancelled() {
    let site = Site::new();
    site.write("scancel.rc", "1");
    site.write("scancel.err", "scancel: error: Kill job error on job id 7: Invalid job id specified\n");
    assert_eq!(site.run(&Cancel { ids: vec![id(7)], names: vec![] }), Cancelled { refused: None });
}

#[test]
fn a_refusal_has_a_class() {
    let site = Site::new();
    site.write("scancel.rc", "210");
    site.write(
        "scancel.err",
        "scancel: error: Kill job error on job id 7: Invalid job id specified\n\
         scancel: error: Kill job error on job id 21: Access/permission denied\n",
    );
    let refused = site.run(&Cancel { ids: vec![id(7), id(21)], names: vec![] }).refused.unwrap();
    assert_eq!(refused.class, FailureClass::Permanent);
    site.write("scancel.rc", "8");
    site.write(
        "scancel.err",
        "scancel: error: Kill job error on job id 1: Unable to contact slurm controller (connect failure)\n",
    );
    let refused = site.run(&Cancel { ids: vec![], names: vec![name("a")] }).refused.unwrap();
    assert_eq!(refused.class, FailureClass::NotDone);
}
