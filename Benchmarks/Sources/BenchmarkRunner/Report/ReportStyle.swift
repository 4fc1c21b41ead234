/// The style sheet of a page.
///
/// It defines colors for text, backgrounds and five stores, in a light and a dark scheme. Printing always uses the light scheme.
/// The contrast with the background is at least 4.5:1 for text, and at least 3:1 for graphics.
enum ReportStyle {
  /// The entire style sheet.
  static var css: String { colors + text + parts + tables + charts + paper }

  /// The variables of the light scheme, also used for printing.
  private static let light = """
    --ground: #ffffff; --raised: #f5f6f8; --ink: #1a1d21; --faint: #54595f; --rule: #d5d9de; --link: #0b57a4;
    --alarm: #8a1c00; --alarm-ground: #fff1ec;
    --c0: #0068a8; --c1: #b34700; --c2: #00735a; --c3: #9c3d74; --c4: #5a5a5a;
    """

  private static let dark = """
    --ground: #14171a; --raised: #1e2226; --ink: #e8eaed; --faint: #a9b0b7; --rule: #3a4046; --link: #8ec5ff;
    --alarm: #ffb59e; --alarm-ground: #3a1d14;
    --c0: #5eb6f0; --c1: #f2a33c; --c2: #35c79b; --c3: #ea9ac9; --c4: #c3c7cb;
    """

  private static let colors = """
    :root { color-scheme: light dark; \(light) }
    @media screen and (prefers-color-scheme: dark) { :root { \(dark) } }

    """ + (0..<StoreLook.colorCount).map { ".c\($0) { --store: var(--c\($0)); }\n" }.joined()

  private static let text = """
    * { box-sizing: border-box; }
    body {
      margin: 0 auto; max-width: 74rem; padding: 1rem; background: var(--ground); color: var(--ink);
      font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word;
    }
    h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0 1rem; }
    h2 { font-size: 1.3rem; line-height: 1.3; margin: 2rem 0 0.5rem; }
    h3 { font-size: 1.05rem; margin: 1.5rem 0 0.5rem; }
    p { max-width: 46rem; margin: 0.5rem 0; }
    a { color: var(--link); }

    """

  private static let parts = """
    .warning { background: var(--alarm-ground); border: 2px solid var(--alarm); border-radius: 6px; padding: 0.5rem 1rem; margin: 1rem 0; }
    .warning h2 { color: var(--alarm); margin: 0; font-size: 1.1rem; }
    .warning ul { margin: 0.25rem 0; padding-left: 1.2rem; }
    .findings { padding-left: 1.2rem; margin: 0.5rem 0; max-width: 60rem; }
    dl { margin: 0; display: grid; gap: 0.15rem; }
    dl div { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.5rem; }
    dt { color: var(--faint); }
    dd { margin: 0; overflow-wrap: anywhere; }
    nav ul {
      display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; padding: 0.75rem 0; margin: 1.5rem 0 0;
      border: solid var(--rule); border-width: 1px 0;
    }
    .key { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; list-style: none; padding: 0; margin: 0.5rem 0; }
    .key li { display: flex; align-items: center; gap: 0.5rem; overflow-wrap: anywhere; }
    .key svg { flex: none; }
    summary { cursor: pointer; }
    details.subject { border-top: 1px solid var(--rule); margin-top: 2rem; }
    details.subject summary h2 { display: inline-block; margin: 0.75rem 0; }
    .patterns { position: absolute; }

    """

  private static let tables = """
    .figures summary { color: var(--link); width: fit-content; padding: 0.25rem 0; }
    .scroll { overflow-x: auto; max-width: 100%; }
    table { min-width: min(100%, 20rem); border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
    caption { text-align: left; font-weight: 600; padding: 0.5rem 0; }
    th, td { padding: 0.2rem 0.75rem 0.2rem 0; border-bottom: 1px solid var(--rule); vertical-align: baseline; }
    td { text-align: right; white-space: nowrap; }
    th.figure { text-align: right; max-width: 8rem; padding-left: 0.25rem; }
    th.name, th[scope="row"] { text-align: left; }
    th { font-weight: 400; }
    th:first-child { min-width: 9rem; }
    thead th { color: var(--faint); vertical-align: bottom; }

    """

  private static let charts = """
    .grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1rem; align-items: stretch; }
    .grid.tables { grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); align-items: start; }
    figure {
      margin: 0; padding: 0.75rem; background: var(--raised); border-radius: 6px; min-width: 0;
      display: grid; grid-row: span 2; grid-template-rows: subgrid; row-gap: 0.5rem; align-content: start;
    }
    @media (max-width: 30rem) { figure { padding: 0.5rem; } }
    figcaption strong, figcaption span { display: block; }
    figcaption span { color: var(--faint); font-size: 0.875rem; line-height: 1.35; }
    .note { font-style: italic; color: var(--faint); font-size: 0.875rem; }
    figure svg { --ground: var(--raised); display: block; width: 100%; max-width: 30rem; height: auto; }
    svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
    svg .tick { font-size: 11px; fill: var(--faint); }
    svg .value { font-weight: 600; font-variant-numeric: tabular-nums; }
    .grid line, line.grid { stroke: var(--rule); }
    line.axis { stroke: var(--faint); }
    .bar { stroke: var(--store); stroke-width: 1; }
    .ground { fill: var(--ground); }
    .full { fill: var(--store); }
    .stroke { stroke: var(--store); stroke-width: 1.8; fill: none; }
    .mark { fill: var(--store); stroke: var(--ground); stroke-width: 1; }
    .line { stroke: var(--store); stroke-width: 2; fill: none; }
    .whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; }
    .halo { stroke: var(--ground); stroke-width: 3.5; fill: none; }

    """

  private static let paper = """
    @media print {
      body { max-width: none; padding: 0; font-size: 10pt; }
      nav { display: none; }
      figure { border: 1px solid var(--rule); }
      figure, .warning, tr, .key { break-inside: avoid; }
      h2, h3, caption, summary { break-after: avoid; }
      .grid { grid-template-columns: repeat(2, minmax(0, 1fr)); }
      .scroll { overflow: visible; }
      details::details-content { content-visibility: visible; display: block; block-size: auto; }
      details:not([open]) > :not(summary) { display: block; }
      summary { list-style: none; }
    }

    """
}
