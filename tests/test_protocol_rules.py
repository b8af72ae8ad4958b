"""What the rules refuse in a well-formed protocol: each refusal has its sentence and its place."""

from __future__ import annotations

import pytest
from campaign_parts import line_of, template

from gpucost_tui.campaign.window import check_tasks
from gpucost_tui.protocol.load import Source, parse
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.protocol.rules import problems

#: Makes the template complete as far as the protocol alone shows.
_FILLED = (
    ('right_of_use = "" ', 'right_of_use = "ours"'),
    ('source = "" ', 'source = "demo"'),
)


def found(*changes: tuple[str, str], name: str = "classification-batch") -> list[Problem]:
    text = template(name)
    for before, after in (*_FILLED, *changes):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    source = Source(text, "p.toml")
    protocol = parse(source)
    return [*problems(protocol, source), *check_tasks(protocol, source)]


def sole(*changes: tuple[str, str], name: str = "classification-batch") -> Problem:
    problem, *others = found(*changes, name=name)
    assert not others, [p.sentence() for p in others]
    assert problem.where.startswith("p.toml, line ")
    return problem


@pytest.mark.parametrize(
    "name", ["classification-batch", "classification-precision", "embedding-batch"]
)
def test_a_filled_template_has_no_problem(name: str) -> None:
    assert found(name=name) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("interactive", "interactive serving (arrivals, concurrency, latency)"),
        ("Server", "interactive serving"),
        ("real time", "interactive serving"),
        ("single_stream", "interactive serving"),
        ("training", "training to convergence"),
        ("fine-tuning", "training to convergence"),
        ("other data sets", "'other data sets'"),
        ("offline", "'offline'"),
    ],
)
def test_r2_other_scenarios_are_other_questions(asked: str, said: str) -> None:
    problem = sole(('"offline-corpus"', f'"{asked}"'))
    assert said in problem.what and "another question" in problem.what and "(R2)" in problem.what
    assert problem.where.endswith("[decision] scenario") and problem.blocking


@pytest.mark.parametrize("written", ['""', '"  \\t "', "'''\n\n'''"])
def test_r5_the_right_of_use_is_stated(written: str) -> None:
    problem = sole(('right_of_use = "ours"', f"right_of_use = {written}"))
    assert "(R5)" in problem.what and problem.where.endswith("[corpus] right_of_use")


def test_a_model_is_named() -> None:
    problem = sole(('source = "demo"', 'source = " "'))
    assert problem.what == "no model is named" and problem.where.endswith("[model] source")


def test_r10_a_series_changes_one_variable() -> None:
    problem = sole(("[variants.batch-4]\n", "[variants.batch-4]\nmax_length = 64\n"))
    assert problem.what.startswith("'batch-1' and 'batch-4' differ in max_length beside")
    assert "(R10)" in problem.what and problem.where.endswith("[series.0] variants")


def test_r10_several_factors_are_all_named() -> None:
    extra = '[variants.batch-4]\ndtype = "bfloat16"\ngrouping = "length"\n'
    problem = sole(("[variants.batch-4]\n", extra))
    assert "differ in dtype, grouping beside the declared factor 'batch_size'" in problem.what


def test_r10_equal_variants_compare_nothing() -> None:
    problem = sole(("batch_size = 4", "batch_size = 8"))
    assert "'batch-4' and 'batch-8' have the same batch_size (8)" in problem.what


def test_r10_hardware_varies_outside_of_the_protocol() -> None:
    three = found(('factor = "batch_size"', 'factor = "hardware"'))
    assert len(three) == 2 and all("differ in batch_size" in p.what for p in three)
    one = ('variants = ["batch-1", "batch-4", "batch-8"]', 'variants = ["batch-1"]')
    unused = found(('factor = "batch_size"', 'factor = "hardware"'), one)
    assert ["is in no series" in p.what for p in unused] == [True, True]


@pytest.mark.parametrize(
    "line", ["warmup = 2", "passes = 3", "inputs = 'longest'", "warmup.passes = 2"]
)
def test_r15_no_variant_has_a_warm_up_of_its_own(line: str) -> None:
    problem = sole(("[variants.batch-4]\n", f"[variants.batch-4]\n{line}\n"))
    assert "(R15)" in problem.what and "[variants.batch-4]" in problem.where
    assert problem.fix == "Set it in [warmup]"


def test_r28_seeds() -> None:
    problem = sole(("[variants.batch-4]\n", "[variants.batch-4]\nseed = 2\n"))
    assert "(R28)" in problem.what and problem.fix == "Set them in [reproduction]"
    problem = sole(("seeds = [0]", "stochastic = true\nseeds = [7]"))
    assert "(R28)" in problem.what and problem.where.endswith("[reproduction] seeds")
    assert found(("seeds = [0]", "stochastic = true\nseeds = [7, 8]")) == []


@pytest.mark.parametrize(
    ("line", "what", "fix"),
    [
        ("batch = 2", "'batch' is no execution setting", "batch_size, max_length"),
        ("threads = -1", "at least 0 is expected, found -1", "Correct it"),
        ("attention = 'flash'", "is expected, found 'flash'", "Correct it"),
        ("device = 'gpu'", "auto, cpu, cuda or cuda:N is expected", "Correct it"),
        ("deterministic = 1", "true or false is expected, found 1", "Correct it"),
        ("deterministic = {}", "true or false is expected, found a table", "Correct it"),
    ],
)
def test_what_a_variant_may_change(line: str, what: str, fix: str) -> None:
    problem = sole(("[variants.batch-4]\n", f"[variants.batch-4]\n{line}\n"))
    assert what in problem.what and fix in problem.fix
    text = template()
    assert problem.where.startswith(f"p.toml, line {line_of(text, '[variants.batch-4]') + 1}, ")


def test_variants_are_defined_and_used() -> None:
    problem = sole(('"batch-4", "batch-8"]', '"batch-4", "batch-8",\n"batch-9"]'))
    assert problem.what == "variant 'batch-9' is not defined"
    line = line_of(template(), 'variants = ["batch-1"') + 1
    assert problem.where == f"p.toml, line {line}, [series.0] variants.3"
    problem = sole(('"batch-1", "batch-4", "batch-8"]', '"batch-1", "batch-8"]'))
    assert problem.what == "variant 'batch-4' is in no series"
    assert problem.where.endswith("[variants.batch-4]")


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ('[[deliverables]]\nname = "corpus"',
         '[[deliverables]]\nname = "corpus"\n[[deliverables]]\nname = "corpus"', "deliverables"),
        ("[[deliverables]]", '[[series]]\nname = "batch size"\nfactor = "batch_size"\n'
         'variants = ["batch-1", "batch-8"]\n[[deliverables]]', "[series.0] name"),
        ("[variants.batch-1]", '[[exclusion_causes]]\nname = "other-process"\n'
         'description = "x"\n[variants.batch-1]', "[exclusion_causes.0] name"),
        ("[reproduction]", '[[quality.subgroups]]\ncolumn = "stratum"\nthreshold = 0.5\n'
         "[reproduction]", "[quality.subgroups.0] column"),
    ],
)  # fmt: skip
def test_names_stand_once(before: str, after: str, place: str) -> None:
    problem = sole((before, after))
    assert "2 times" in problem.what and place in problem.where


def test_the_reference_variant_is_one_of_the_series() -> None:
    problem = sole(('variant = "batch-1"', 'variant = "batch-2"'), name="embedding-batch")
    assert problem.what == "variant 'batch-2' is in no series"
    assert problem.where.endswith("[reference] variant")
    tolerance = ("threshold = 0.999", 'threshold = 0.9\ntolerance = 0.1\ntolerance_variant = "x"')
    two = found(tolerance, name="embedding-batch")
    assert ["no series" in two[0].what, "two different variants" in two[1].what] == [True, True]


@pytest.mark.parametrize("name", ["id", "text", "stratum"])
def test_columns_with_a_meaning_of_their_own(name: str) -> None:
    problem = sole(('label_column = "label"', f'label_column = "{name}"'))
    assert "can't serve here" in problem.what and problem.where.endswith("[corpus] label_column")
    problem = sole(('column = "label"\n#', f'column = "{name}"\n#'))
    assert problem.where.endswith("[reference] column")


def test_strata_are_declared_where_subgroups_need_them() -> None:
    text = template()
    strata = text[text.index("[[corpus.strata]]") : text.index("[tuning]")]
    problem = sole((strata, ""))
    assert "(R12)" in problem.what and problem.where.endswith("[quality.subgroups.0] column")


# -- the window's tasks ------------------------------------------------------------------------


def test_tasks_that_wait_for_each_other() -> None:
    problem = sole(('name = "install"', 'name = "install"\nafter = ["export"]'))
    assert problem.what.startswith("tasks wait for each other: install, checks, comparison")
    assert problem.where.endswith("[window.tasks.0] after") and problem.blocking
    problem = sole(('after = ["install"]', 'after = ["checks"]'))
    assert problem.what == "tasks wait for each other: checks"


def test_unknown_and_repeated_tasks() -> None:
    problem = sole(('after = ["install"]', 'after = [\n"install",\n"lunch"]'))
    assert problem.what == "there is no task 'lunch' to come after" and "export" in problem.fix
    assert problem.where.endswith("[window.tasks.1] after.1")
    problem = sole(('name = "checks"', 'name = "install"'), ('["checks"]', '["install"]'))
    assert "'install' is used 2 times" in problem.what
    assert problem.where.endswith("[window.tasks.1] name")


def test_a_task_without_a_figure_is_noted() -> None:
    problem = sole(("hours = 0.5\n", ""))
    assert "neither hours nor a phase" in problem.what and not problem.blocking
    text = template()
    problem, *others = found((text[text.index("# The rental's schedule") :], ""))
    assert not others and not problem.blocking and "(R32)" in problem.what
