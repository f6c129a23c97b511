"""Which columns the names in a header say are the ends of an edge."""

from __future__ import annotations

import pytest

from gcnsim.graph.formats.headers import EndPlaces, named_ends, only_ends


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        (",source,target", (1, 2)),
        ("edge_id,src,dst", (1, 2)),
        ("HEAD,relation,Tail", (0, 2)),
        ("target,weight,source", (2, 0)),
        ("FromNodeId,ToNodeId", (0, 1)),
        ("weight,node_1,node_2", (1, 2)),
        ("id,Node1,Node2", (1, 2)),
        ("id1,id2", (0, 1)),
        ("protein1,protein2,combined_score", (0, 1)),
        ("score,gene_a,gene_b", (1, 2)),
        ("val,i,j", (1, 2)),
        ("u,v,w", (0, 1)),
        (":TYPE,:START_ID(Person),:END_ID(Person)", (1, 2)),
        ("time,follower_id,followee_id", (1, 2)),
        ("year,citing,cited", (1, 2)),
        ("subject,predicate,object", (0, 2)),
        ("row,data,col", (0, 2)),
        ("source,target,start_date,end_date", (0, 1)),
        ("source_name,source_id,target_name,target_id", (1, 3)),
        ("user_id,friend_id", (0, 1)),
    ],
)
def test_the_ends_are_found_wherever_they_stand(header: str, ends: tuple[int, int]) -> None:
    assert named_ends(header.split(",")) == EndPlaces(*ends)


@pytest.mark.parametrize(
    "header", ["userId,movieId,rating,timestamp", "rating,user,item", "weight,source_user,target_item"]
)
def test_two_different_nouns_are_two_kinds_of_nodes(header: str) -> None:
    ends = named_ends(header.split(","))
    assert ends is not None
    assert ends.two_kinds


@pytest.mark.parametrize(
    "header", ["alpha,beta,gamma", "gene1,gene2,protein1,protein2", "weight1,weight2", "start_time,end_time"]
)
def test_other_names_say_nothing(header: str) -> None:
    assert named_ends(header.split(",")) is None


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        ("person,knows", EndPlaces(0, 1)),
        ("person,knows,since_year", EndPlaces(0, 1)),
        ("weight,alpha,beta", EndPlaces(1, 2)),
        ("id,alpha,beta,label", EndPlaces(1, 2)),
        ("Unnamed: 0,alpha,beta", EndPlaces(1, 2)),
        ("alpha,beta,gamma", None),
        ("node,label", None),
        ("alpha,weight", None),
    ],
)
def test_what_is_a_weight_a_time_or_a_label_is_no_end(header: str, ends: EndPlaces | None) -> None:
    assert only_ends(header.split(",")) == ends
