import HoldfastStore

/// A picture of a model: boxes in columns, each entity one column right of those that it is first reached from, and a curve for each pair
/// of relationships. Everything is laid out from the numbers of characters, so the same model always makes the same picture.
struct SVGGraph {
  private struct Box {
    let entity: ManagedObjectModel.Entity
    let lines: [(name: String, type: String)]
    var x = 0.0
    var y = 0.0
    let width: Double
    let height: Double
  }

  private let model: ManagedObjectModel
  private let edges: [GraphEdge]
  private var boxes: [String: Box] = [:]
  private var size = (width: 0.0, height: 0.0)

  private static let (lineHeight, characterWidth, gap, margin) = (18.0, 7.2, 90.0, 24.0)

  init(_ model: ManagedObjectModel) {
    self.model = model
    edges = GraphEdge.all(model)
    for entity in model.entities {
      let lines = GraphLines.attributes(entity)
      let widest = max(lines.map { $0.name.count + $0.type.count + 3 }.max() ?? 0, entity.name.count + 4)
      boxes[entity.name] = Box(
        entity: entity, lines: lines, width: Double(widest) * SVGGraph.characterWidth + 16,
        height: Double(lines.count + 1) * SVGGraph.lineHeight + 14)
    }
    place()
  }

  /// The column of each entity: breadth first from the most connected one of each connected part.
  private func columns() -> [[String]] {
    var neighbours: [String: [String]] = [:]
    for edge in edges {
      neighbours[edge.source, default: []].append(edge.destination)
      neighbours[edge.destination, default: []].append(edge.source)
    }
    for entity in model.entities {
      guard let above = entity.superentityIndex.map({ model.entities[$0].name }) else { continue }
      neighbours[entity.name, default: []].append(above)
      neighbours[above, default: []].append(entity.name)
    }
    var columns: [[String]] = []
    var placed: Set<String> = []
    let names = model.entities.map(\.name).sorted { (neighbours[$0]?.count ?? 0, $1) > (neighbours[$1]?.count ?? 0, $0) }
    for start in names where placed.insert(start).inserted {
      var level = [start], depth = 0
      while !level.isEmpty {
        if depth == columns.count { columns.append([]) }
        columns[depth] += level
        level = level.flatMap { neighbours[$0] ?? [] }.filter { placed.insert($0).inserted }
        depth += 1
      }
    }
    return columns
  }

  private mutating func place() {
    var x = SVGGraph.margin
    for column in columns() {
      var y = SVGGraph.margin
      for name in column {
        boxes[name]?.x = x
        boxes[name]?.y = y
        y += (boxes[name]?.height ?? 0) + 28
      }
      x += (column.compactMap { boxes[$0]?.width }.max() ?? 0) + SVGGraph.gap
      size.height = max(size.height, y - 28 + SVGGraph.margin)
    }
    size.width = max(x - SVGGraph.gap + SVGGraph.margin + 60, 2 * SVGGraph.margin)
    size.height = max(size.height, 2 * SVGGraph.margin)
  }

  func text() -> String {
    let (width, height) = (SVGGraph.number(size.width), SVGGraph.number(size.height))
    var lines = [
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" viewBox=\"0 0 \(width) \(height)\" role=\"img\">",
      "<title>\(model.entities.count) entities and how they are related</title>",
      "<style>text{font:13px ui-monospace,monospace;fill:#1f2328}.e{font-weight:bold}.a{font-style:italic}.t{fill:#57606a}.l{font-size:11px;fill:#57606a}"
        + "rect{fill:#fff;stroke:#8c959f}.h{fill:#e8eef7}path{fill:none;stroke:#57606a}.s{stroke-dasharray:5 4}"
        + "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.t,.l{fill:#9198a1}rect{fill:#151b23;stroke:#656c76}.h{fill:#26303d}path{stroke:#9198a1}}</style>",
    ]
    for entity in model.entities {
      if let above = entity.superentityIndex { lines += curve(entity.name, model.entities[above].name, "", isDashed: true, 0) }
    }
    for (place, edge) in edges.enumerated() {
      let label = "\(edge.label) (\(edge.inverseIsToMany ? "n" : "1"):\(edge.isToMany ? "n" : "1"))"
      lines += curve(edge.source, edge.destination, label, isDashed: false, Double(place % 5) * 9 - 18)
    }
    for entity in model.entities { lines += box(entity.name) }
    return (lines + ["</svg>"]).joined(separator: "\n") + "\n"
  }

  private func box(_ name: String) -> [String] {
    guard let box = boxes[name] else { return [] }
    let (x, y) = (box.x, box.y)
    var lines = [
      "<rect x=\"\(SVGGraph.number(x))\" y=\"\(SVGGraph.number(y))\" width=\"\(SVGGraph.number(box.width))\" height=\"\(SVGGraph.number(box.height))\" rx=\"4\"/>",
      "<rect class=\"h\" x=\"\(SVGGraph.number(x))\" y=\"\(SVGGraph.number(y))\" width=\"\(SVGGraph.number(box.width))\" height=\"24\" rx=\"4\"/>",
      SVGGraph.text(name, box.entity.isAbstract ? "e a" : "e", x + 8, y + 17),
    ]
    for (row, line) in box.lines.enumerated() {
      let below = y + 24 + Double(row + 1) * SVGGraph.lineHeight - 4
      lines.append(SVGGraph.text(line.name, "", x + 8, below))
      lines.append(SVGGraph.text(line.type, "t", x + box.width - 8, below, anchor: "end"))
    }
    return lines
  }

  /// A curve between the sides that face each other; a loop at the right side for an entity that leads to itself.
  private func curve(_ source: String, _ destination: String, _ label: String, isDashed: Bool, _ shift: Double) -> [String] {
    guard let a = boxes[source], let b = boxes[destination] else { return [] }
    let isBeside = a.x == b.x
    let rightwards = a.x <= b.x
    let start = (x: rightwards ? a.x + a.width : a.x, y: a.y + min(a.height / 2 + shift, a.height - 4))
    let end = (x: isBeside ? b.x + b.width : rightwards ? b.x : b.x + b.width, y: b.y + min(b.height / 2 - shift, b.height - 4) + (source == destination ? 14 : 0))
    let bend = isBeside ? 46.0 : max(abs(end.x - start.x) / 2, 30) * (rightwards ? 1 : -1)
    let (c1, c2) = (start.x + bend, isBeside ? end.x + bend : end.x - bend)
    let path =
      "M\(SVGGraph.number(start.x)) \(SVGGraph.number(start.y)) C\(SVGGraph.number(c1)) \(SVGGraph.number(start.y)) \(SVGGraph.number(c2)) \(SVGGraph.number(end.y)) \(SVGGraph.number(end.x)) \(SVGGraph.number(end.y))"
    var lines = ["<path\(isDashed ? " class=\"s\"" : "") d=\"\(path)\"/>"]
    if !label.isEmpty {
      let x = isBeside ? start.x + 36 : (start.x + end.x) / 2
      lines.append(SVGGraph.text(label, "l", x, (start.y + end.y) / 2 - 4, anchor: isBeside ? "start" : "middle"))
    }
    return lines
  }

  private static func text(_ text: String, _ style: String, _ x: Double, _ y: Double, anchor: String = "start") -> String {
    let anchor = anchor == "start" ? "" : " text-anchor=\"\(anchor)\""
    return "<text\(style.isEmpty ? "" : " class=\"\(style)\"") x=\"\(number(x))\" y=\"\(number(y))\"\(anchor)>\(XMLText.escaped(text))</text>"
  }

  private static func number(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
  }
}
