"""The drawing layer: canvas geometry, tiling, animations, the window and lazy imports."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toys.orchard import Orchard

import gpuzoo
from gpuzoo.render import CYCLE, PALETTE, Canvas, Window, fade, mix, picture_size, save_animation, tile
from gpuzoo.render import canvas as canvas_module
from gpuzoo.render.strokes import Masks

Image = pytest.importorskip("PIL.Image")

RED, WHITE = (255, 0, 0), (255, 255, 255)


def scene(canvas, t=0.0):
    """Draw one of everything."""
    canvas.background("paper")
    canvas.view(0, 0, 10, 10, pad=4, hud=True)
    canvas.rect(0, 0, 10, 10, fill="white", outline="line", radius=0.5)
    canvas.grid(5, 5)
    canvas.image(np.full((2, 2, 4), 200, np.uint8), 8, 8, 9, 9)
    canvas.sector(5, 5, 3, 0.2, 1.2, fill=fade("red", 0.2), outline="red")
    canvas.polygon([(1, 1), (3, 1), (2, 3)], fill="#31a9a580", outline="teal")
    canvas.line(1, 9, 4, 9, colour="#00000080", width=3)
    canvas.path([(1, 5), (2, 6), (3, 5)], closed=True)
    canvas.trail([(6, 1), (7, 2), (8, 1 + t)], colour="purple", width=3)
    canvas.circle(5 + t, 5, 0.5, fill="blue", outline="white")
    canvas.arrow(5 + t, 5, 0.7, 1.5)
    canvas.dart(7, 7, 2.0, 0.5, fill="orange")
    canvas.text(5, 8, "hello", bold=True)
    canvas.hud(left=f"t={t:.1f}", right="score 3")
    return canvas.array()


def pixels(array, colour):
    """Return the (rows, columns) which have a colour."""
    return np.nonzero((array == np.array(colour)).all(-1))


@pytest.mark.parametrize(("w", "h"), [(64, 64), (120, 77)])
def test_array_is_a_fresh_contiguous_uint8_frame(w, h):
    canvas = Canvas(w, h)
    frame = scene(canvas)
    assert frame.shape == (h, w, 3)
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    assert frame.flags.writeable
    frame[:] = 0
    assert canvas.array().any()


def test_same_calls_give_same_pixels():
    canvas = Canvas(200, 160)
    first = scene(canvas)
    scene(canvas, t=1.0)
    np.testing.assert_array_equal(scene(canvas), first)
    np.testing.assert_array_equal(scene(Canvas(200, 160)), first)
    assert (scene(canvas, t=1.0) != first).any()


def test_circle_colours_its_disc_and_nothing_else():
    canvas = Canvas(200, 200)
    canvas.view(0, 0, 10, 10)
    canvas.circle(2.5, 7.5, 1.0, fill="#ff0000")
    frame = canvas.array()
    y, x = np.mgrid[:200, :200] + 0.5
    distance = np.hypot(x / 20 - 2.5, (200 - y) / 20 - 7.5)
    assert (frame[distance < 0.9] == RED).all()
    assert (frame[distance > 1.1] == WHITE).all()
    edge = frame[(distance > 0.93) & (distance < 1.07)]
    assert ((edge[:, 1] > 0) & (edge[:, 1] < 255)).any()  # antialiased


def test_y_up_and_y_down():
    for y_down in (False, True):
        canvas = Canvas(100, 100)
        canvas.view(0, 0, 10, 10, y_down=y_down)
        canvas.rect(0, 0, 10, 2, fill="#ff0000")
        frame = canvas.array()
        assert (frame[0, 50] == (RED if y_down else WHITE)).all()
        assert (frame[99, 50] == (WHITE if y_down else RED)).all()
        assert len(pixels(frame, RED)[0]) == 100 * 20


@pytest.mark.parametrize(("w", "h"), [(200, 100), (100, 200)])
def test_view_keeps_the_aspect_ratio_and_centres(w, h):
    canvas = Canvas(w, h)
    canvas.view(-1, -1, 1, 1)
    canvas.rect(-1, -1, 1, 1, fill="#ff0000")
    rows, columns = pixels(canvas.array(), RED)
    assert (np.ptp(rows), np.ptp(columns)) == (99, 99)
    assert (rows.min() + rows.max(), columns.min() + columns.max()) == (h - 1, w - 1)


def test_hud_and_padding_keep_the_view_free():
    canvas = Canvas(400, 400)
    canvas.view(0, 0, 1, 1, pad=10, hud=True)
    canvas.rect(0, 0, 1, 1, fill="#ff0000")
    canvas.hud("left", "right", fill="#00ff00")
    frame = canvas.array()
    rows, _ = pixels(frame, RED)
    assert rows.min() >= 24 + 10
    assert rows.max() <= 399 - 10
    assert len(pixels(frame[:24], (0, 255, 0))[0]) > 1000
    assert (frame[:24] < 100).all(-1).any()  # some text


@pytest.mark.parametrize("y_down", [False, True])
def test_arrows_and_darts_point_along_the_world_angle(y_down):
    for glyph in ("arrow", "dart"):
        canvas = Canvas(100, 100)
        canvas.view(-1, -1, 1, 1, y_down=y_down)
        if glyph == "arrow":
            canvas.arrow(0, 0, np.pi / 2, 0.9, colour="#ff0000", width=20)
        else:
            canvas.dart(0, 0, np.pi / 2, 0.9, fill="#ff0000")
        rows, columns = pixels(canvas.array(), RED)
        tip = rows.max() if y_down else rows.min()
        assert abs(tip - (94 if y_down else 5)) <= 2
        assert abs(columns.mean() - 49.5) < 1.0


def test_many_at_once_are_as_many_one_by_one():
    """Darts of one colour, and lines: where they lie apart, not a pixel differs."""
    place = np.stack(np.meshgrid(np.arange(1, 10, 2), np.arange(1, 10, 2)), -1).reshape(-1, 2) + 0.1
    angles = np.linspace(0, 6, len(place))
    ends = place + 0.6 * np.stack([np.sin(angles), np.cos(angles)], 1)
    place[3] = np.nan
    ends[4] = np.inf
    for width in (1.5, 4.0):
        many, single = Canvas(200, 200), Canvas(200, 200)
        for canvas in (many, single):
            canvas.view(0, 0, 10, 10)
        many.lines(place, ends, colour="#ff000080", width=width)
        many.darts(place, angles, 0.5, "blue")
        for a, b in zip(place, ends, strict=True):
            single.line(*a, *b, colour="#ff000080", width=width)
        for a, angle in zip(place, angles, strict=True):
            single.dart(*a, angle, 0.5)
        assert np.array_equal(many.array(), single.array())
    many.lines(place[:0], ends[:0])  # none


def test_image_row_zero_lies_at_y0():
    cells = np.array([[RED, WHITE], [WHITE, WHITE]], np.uint8)
    for y_down in (False, True):
        canvas = Canvas(40, 40)
        canvas.view(0, 0, 2, 2, y_down=y_down)
        canvas.image(cells, 0, 0, 2, 2)
        rows, columns = pixels(canvas.array(), RED)
        assert (rows.min(), rows.max()) == ((0, 19) if y_down else (20, 39))
        assert (columns.min(), columns.max()) == (0, 19)


def test_widths_and_texts_scale_with_the_canvas():
    def inked(size):
        canvas = Canvas(size, size)
        canvas.line(0.2, 0.7, 0.8, 0.7, colour="#ff0000", width=8)
        canvas.text(0.5, 0.3, "gpuzoo", size=60, colour="black")
        canvas.text(0.5, 0.9, "gpuzoo", height=0.15, colour="black")
        return (255 - canvas.array()[..., 1].astype(float)).mean()

    assert inked(150) == pytest.approx(inked(450), rel=0.06)


def test_middle_anchor_centres_capitals():
    canvas = Canvas(100, 100)
    canvas.text(0.5, 0.5, "H", height=0.6, colour="black")
    rows, columns = np.nonzero(canvas.array()[..., 0] < 128)
    assert abs((rows.min() + rows.max()) / 2 - 49.5) <= 1
    assert abs((columns.min() + columns.max()) / 2 - 49.5) <= 1


def test_transparency_blends_once_even_where_a_path_crosses_itself():
    canvas = Canvas(90, 90)
    canvas.background("#ffffff")
    canvas.path([(0.1, 0.1), (0.9, 0.9), (0.9, 0.1), (0.1, 0.9)], colour="#ff000080", width=30)
    frame = canvas.array()
    assert frame[..., 0].min() == 255
    assert frame[..., 1].min() == 127
    canvas.rect(0, 0, 1, 1, fill="#0000ff40")
    assert abs(int(canvas.array()[2, 45, 0]) - 191) <= 1


def test_trail_fades_towards_its_oldest_point():
    canvas = Canvas(100, 100)
    canvas.trail([(x, 0.5) for x in np.linspace(0, 1, 40)], colour="black", width=40)
    row = canvas.array()[50, ::10, 0].astype(int)
    assert (np.diff(row) < 0).all()
    assert row[0] > 230


def test_batches_equal_single_calls():
    rng = np.random.default_rng(0)
    xy, angles = rng.random((20, 2)), rng.uniform(-4, 4, 20)
    radii = rng.uniform(0.01, 0.1, 20)
    names = [CYCLE[i % len(CYCLE)] for i in range(20)]
    one, many, rgb = Canvas(120, 120), Canvas(120, 120), Canvas(120, 120)
    many.circles(xy, radii, names, outline="white")
    many.arrows(xy, angles, 2 * radii, names)
    many.darts(xy, angles, radii, names)
    values = np.array([[int(PALETTE[n][i : i + 2], 16) for i in (1, 3, 5)] for n in names])
    rgb.circles(xy, radii, values.astype(np.uint8), outline="white")
    for i, name in enumerate(names):
        one.circle(*xy[i], radii[i], fill=name, outline="white")
    np.testing.assert_array_equal(one.array(), rgb.array())
    for i, name in enumerate(names):
        one.arrow(*xy[i], angles[i], 2 * radii[i], colour=name)
    for i, name in enumerate(names):
        one.dart(*xy[i], angles[i], radii[i], fill=name)
    np.testing.assert_array_equal(one.array(), many.array())


def test_nothing_drawn_for_empty_non_finite_or_far_away_agents():
    canvas = Canvas(50, 50)
    blank = canvas.array()
    for xy in (np.zeros((0, 2)), [(np.nan, 0.5), (0.5, np.inf)], [(1e7, 0.5), (0.5, -1e7)]):
        canvas.circles(xy, 0.1)
        canvas.arrows(xy, 0.0, 0.1)
        canvas.darts(xy, 0.0, 0.1)
        canvas.trail(xy)
    np.testing.assert_array_equal(canvas.array(), blank)


def test_colours():
    assert mix("#000000", "#ffffff", 0.5) == "#808080ff"
    assert mix("red", "blue", -1) == PALETTE["red"] + "ff"
    assert fade("white", 0.5) == "#ffffff80"
    canvas = Canvas(10, 10)
    for bad in ("reddish", "#fff", "#gggggg", "#12 45 ", ""):
        with pytest.raises(ValueError, match="unknown colour"):
            canvas.background(bad)
    with pytest.raises(ValueError, match="one colour or 2"):
        canvas.circles([(0, 0), (1, 1)], 0.1, ["red"])


def test_bad_sizes_and_views():
    with pytest.raises(ValueError, match="positive"):
        Canvas(0, 10)
    canvas = Canvas(10, 10)
    for window in ((0, 0, 0, 1), (0, 1, 1, 0), (0, 0, float("nan"), 1)):
        with pytest.raises(ValueError, match="empty view"):
            canvas.view(*window)
    with pytest.raises(ValueError, match="empty view"):
        canvas.view(0, 0, 1, 1, pad=250)


def test_tile():
    frames = [np.full((4, 6, 3), i, np.uint8) for i in range(5)]
    sheet = tile(frames, gap=1, colour="#ff0000")
    assert sheet.shape == (2 * 4 + 1, 3 * 6 + 2, 3)
    assert sheet.dtype == np.uint8
    assert (sheet[:4, 7:13] == 1).all()
    assert (sheet[5:, :6] == 3).all()
    assert (sheet[4] == RED).all()
    assert (sheet[:, 6] == RED).all()
    assert tile(np.stack(frames), columns=5, gap=0).shape == (4, 30, 3)
    assert tile(frames[:1]).shape == (4, 6, 3)
    for bad in ([], [frames[0], frames[0][:2]], [frames[0][..., 0]]):
        with pytest.raises(ValueError, match="at least one frame"):
            tile(bad)
    with pytest.raises(ValueError, match="columns"):
        tile(frames, columns=0)


@pytest.mark.parametrize("suffix", [".gif", ".png"])
def test_animation_roundtrip(tmp_path, suffix):
    canvas = Canvas(90, 61)
    frames = [scene(canvas, t / 10) for t in range(25)]
    path = tmp_path / "new" / f"film{suffix}"
    save_animation(iter(frames), path, fps=30)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    total = 0
    with Image.open(path) as film:
        assert film.n_frames == 25
        assert film.size == (90, 61)
        for i, frame in enumerate(frames):
            film.seek(i)
            total += film.info["duration"]
            error = np.abs(np.asarray(film.convert("RGB"), dtype=int) - frame)
            assert error.mean() < (1.5 if suffix == ".gif" else 1e-9)
    assert total == pytest.approx(25 / 30 * 1000, abs=11)


def test_gif_keeps_flat_colours_exactly_and_stays_small(tmp_path):
    canvas = Canvas(200, 200)
    canvas.view(0, 0, 10, 10)
    rng = np.random.default_rng(0)
    frames = []
    for t in range(100):
        canvas.background("paper")
        canvas.circle(1 + t / 12, 5, 0.5, fill="red")
        canvas.circles(rng.random((10, 2)) * 10, 0.3)
        frames.append(canvas.array())
    save_animation(frames, tmp_path / "a.gif", fps=20)
    assert (tmp_path / "a.gif").stat().st_size < 400_000
    with Image.open(tmp_path / "a.gif") as film:
        film.seek(50)
        frame = np.asarray(film.convert("RGB"))
    assert (frames[50] == frame).all(-1).mean() > 0.95


def test_animation_errors_leave_no_file(tmp_path):
    frame = np.zeros((8, 8, 3), np.uint8)
    for name in ("film.avi", "film", "gif"):
        with pytest.raises(ValueError, match=r"\.gif, \.png, \.mp4, \.webm or \.html"):
            save_animation([frame], tmp_path / name, 10)
    for name, fps in (("a.gif", 60), ("a.gif", 0.5), ("a.png", 0), ("a.png", float("nan"))):
        with pytest.raises(ValueError, match="fps"):
            save_animation([frame], tmp_path / name, fps)
    for frames in ([], [frame, frame[:4]], [frame[..., 0]]):
        with pytest.raises(ValueError, match="at least one frame"):
            save_animation(frames, tmp_path / "a.gif", 10)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.gif"
    path.write_bytes(b"old")

    def broken(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(Image.Image, "save", broken)
    with pytest.raises(OSError, match="disk full"):
        save_animation([np.zeros((8, 8, 3), np.uint8)], path, 10)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore")  # imageio leaves pipes to the garbage collector
@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_video(tmp_path, suffix):
    pytest.importorskip("imageio_ffmpeg")
    imageio = pytest.importorskip("imageio.v2")
    canvas = Canvas(91, 60)
    save_animation([scene(canvas, t / 5) for t in range(10)], tmp_path / f"a{suffix}", fps=10)
    with imageio.get_reader(tmp_path / f"a{suffix}") as film:
        assert film.get_meta_data()["size"] == (90, 60)
        assert sum(1 for _ in film) == 10


@pytest.mark.parametrize(
    ("missing", "use", "message"),
    [
        ("PIL.Image", lambda p: Canvas(8, 8), r"Rendering needs Pillow: .*gpuzoo\[render\]"),
        ("PIL.Image", lambda p: save_animation([], p / "a.gif"), "Rendering needs Pillow"),
        ("imageio_ffmpeg", lambda p: save_animation([], p / "a.mp4"), r"imageio\[ffmpeg\]"),
        ("pygame", lambda p: Window().show(np.zeros((8, 8, 3), np.uint8)), "needs pygame"),
    ],
)
def test_missing_packages_are_named(monkeypatch, tmp_path, missing, use, message):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=message):
        use(tmp_path)


def test_window_headless(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window("test", fps=1000)
    assert not pygame.display.get_init()
    frame = scene(Canvas(60, 40))
    assert window.show(frame)
    surface = pygame.display.get_surface()
    np.testing.assert_array_equal(pygame.surfarray.array3d(surface).swapaxes(0, 1), frame)
    assert window.show(frame[:20])
    assert pygame.display.get_surface().get_size() == (60, 20)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not window.show(frame)
    assert window.closed
    assert not pygame.display.get_init()
    assert not window.show(frame)
    window.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gpuzoo.SingleEnv("CartPole-v1", render_mode="human"),
        lambda: gpuzoo.parallel_env("SimpleSpread-v0", render_mode="human"),
    ],
)
def test_human_mode_without_a_display_is_refused_when_the_env_is_made(make, monkeypatch):
    pygame = pytest.importorskip("pygame")
    for name in ("SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")  # what SDL falls back to
    with pytest.raises(RuntimeError, match=r"a window needs a display.*render_mode='rgb_array'"):
        make()
    assert not pygame.display.get_init()


def test_what_two_pictures_begin_with_is_painted_once():
    """A canvas that goes on from the picture before gives the pixels of a new one, whatever has changed."""
    rng = np.random.default_rng(3)
    used = Canvas(120, 90)
    for _ in range(40):
        fresh = Canvas(120, 90)
        kept = [(0.2 * k, 0.1 * k, 0.3, CYCLE[k % len(CYCLE)]) for k in range(rng.integers(6))]
        moved = [(*rng.random(2), 0.2, fade("red", 0.6)) for _ in range(rng.integers(3))]
        for canvas in (used, fresh):
            canvas.clear()
            for x, y, r, colour in (*kept, *moved):
                canvas.circle(x, y, r, fill=colour, outline="white")
                canvas.rect(x, y, x + r, y + r, fill=colour, radius=0.05)
            canvas.text(0.5, 0.5, str(len(moved)), size=30)
            canvas.text(-0.1, 0.9, "beyond the edge", size=30)
        np.testing.assert_array_equal(used.array(), fresh.array())


def draw_card(canvas, x, colour):
    canvas.rect(x, 0.2, x + 0.3, 0.8, fill=colour, radius=0.05)
    canvas.text(x + 0.15, 0.5, colour)


def test_a_call_is_drawn_once_for_each_view():
    """Repeated, it gives the pixels of a call, in the view of now, and between other shapes."""
    calls, used, fresh = [], Canvas(90, 90), Canvas(90, 90)

    def counted(canvas, *arguments):
        calls.append(arguments)
        draw_card(canvas, *arguments)

    for width, x, colour in [(1, 0.1, "red"), (1, 0.1, "red"), (2, 0.1, "red"), (1, 0.3, "red"), (1, 0.1, "red")]:
        for canvas in (used, fresh):
            canvas.clear()
            canvas.view(0, 0, width, 1)
            canvas.circle(0.2, 0.4, 0.2, fill="green")
        used.cached(counted, x, colour)
        draw_card(fresh, x, colour)
        for canvas in (used, fresh):
            canvas.circle(0.3, 0.6, 0.1, fill="blue")
        np.testing.assert_array_equal(used.array(), fresh.array())
    assert calls == [(0.1, "red"), (0.1, "red"), (0.3, "red")]


def test_a_canvas_remembers_a_bounded_number_of_calls(monkeypatch):
    monkeypatch.setattr(canvas_module, "_MOST_DRAWN", 3)
    canvas = Canvas(40, 40)
    for k in range(10):
        canvas.cached(draw_card, 0.01 * k, "red")
    assert len(canvas._drawn) == 3


def test_large_shapes_are_filled_as_small_ones_are():
    """The rectangle inside a large shape is filled without its mask: no pixel may differ from blending."""
    masks, canvas = Masks(), Canvas(300, 300)
    canvas.circle(0.4, 0.5, 0.37, fill="#102030")
    canvas.rect(0.1, 0.1, 0.93, 0.57, fill="#405060", radius=0.11)
    frame = canvas.array()
    expected = Image.new("RGB", (300, 300), (255, 255, 255))
    for stroke in canvas._strokes[1:]:
        expected.paste(stroke.ink, stroke.place, stroke.make())
        assert masks.get(stroke.key, stroke.make).solid, "large enough to be filled"
    np.testing.assert_array_equal(frame, np.asarray(expected))


def test_many_small_masks_take_little_memory():
    """A mask of a few pixels takes far more than those: an agent that turns must not fill the memory."""
    masks, few = Masks(), Image.new("L", (3, 3))
    for k in range(20_000):
        masks.get(("polygon", k), lambda: few)
    assert 5_000 < len(masks._masks) < 11_000


def test_importing_the_module_imports_no_drawing_library():
    code = (
        "import sys\n"
        "from gpuzoo.render import Window\n"
        "Window()\n"
        "bad = {'PIL', 'pygame', 'imageio', 'matplotlib'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- pictures that are not square ----


@pytest.mark.parametrize(
    ("aspect", "size"), [(1, (480, 480)), (2, (480, 240)), (0.75, (360, 480)), (16, (480, 30)), (1 / 16, (30, 480))]
)
def test_the_longer_side_is_given(aspect, size):
    assert picture_size(aspect, 480) == size


@pytest.mark.parametrize(("aspect", "side"), [(0.0, 480), (-1.0, 480), (17.0, 480), (float("nan"), 480), (1.0, 0)])
def test_no_such_picture(aspect, side):
    with pytest.raises(ValueError, match=r"want aspect in 1/16\.\.16 and a positive side"):
        picture_size(aspect, side)


def test_every_interface_draws_in_the_games_own_shape(tmp_path, monkeypatch):
    """The orchard is twice as wide as high, 8 x 16 cells; with other cells it has another shape."""
    wide, high = (240, 480, 3), (480, 160, 3)
    batch = gpuzoo.BatchEnv(Orchard, 2, device="cpu")
    batch.reset(seed=0)
    assert batch.render(1).shape == wide
    env = gpuzoo.parallel_env(Orchard, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == wide
    rows = gpuzoo.make_vec(Orchard, num_worlds=2, device="cpu", render_mode="rgb_array")
    rows.reset(seed=0)
    assert [frame.shape for frame in rows.render()[::6]] == [wide, wide]
    other = gpuzoo.BatchEnv(Orchard, 1, device="cpu", rows=12, columns=4)
    other.reset(seed=0)
    assert other.render().shape == high
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    from films import frames

    film = frames(Orchard(), 2, 1, size=100)
    assert [frame.shape for frame in film] == [(50, 100, 3)] * 2
    assert frames(Orchard(), 1, 1, size=100, aspect=1.0)[0].shape == (100, 100, 3)
    save_animation([tile([frame, frame]) for frame in film], tmp_path / "film.gif", 8)
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.size == (202, 50)
