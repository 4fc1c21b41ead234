import HoldfastStore

/// Draws a model as an SVG image: boxes in columns, and a curve for each pair of relationships, from one relationship's line to the
/// other's. Each entity is one column to the right of the entity from which it is first reached. The layout depends only on the
/// numbers of characters, so it is deterministic.
struct SVGGraph {
  private struct Box {
    let entity: ManagedObjectModel.Entity
    let lines: [(name: String, type: String)]
    /// The number of lines with attributes. The following lines are relationships.
    let attributeCount: Int
    var x = 0.0
    var y = 0.0
    let width: Double
    let height: Double

    /// The vertical center of a relationship's line, or of the name's line.
    func middle(of relationship: String?) -> Double {
      let row = relationship.flatMap { name in lines.indices.first { $0 >= attributeCount && lines[$0].name == name } }
      return row.map { y + 24 + (Double($0) + 0.5) * lineHeight } ?? y + 12
    }
  }

  private let model: ManagedObjectModel
  private let edges: [GraphEdge]
  private var boxes: [String: Box] = [:]
  private var size = (width: 0.0, height: 0.0)

  private static let (lineHeight, characterWidth, gap, margin) = (18.0, 7.9, 110.0, 24.0)

  init(_ model: ManagedObjectModel) {
    self.model = model
    edges = GraphEdge.all(model)
    for entity in model.entities {
      let attributes = GraphLines.attributes(entity)
      let relationships = entity.ownRelationships.map { ($0.name, model.destination(of: $0).name + ($0.isToMany ? " *" : "")) }
      let lines = attributes + relationships
      let widest = max(lines.map { $0.name.count + $0.type.count + 3 }.max() ?? 0, entity.name.count + 4)
      boxes[entity.name] = Box(
        entity: entity, lines: lines, attributeCount: attributes.count, width: Double(widest) * SVGGraph.characterWidth + 16,
        height: Double(lines.count) * SVGGraph.lineHeight + 32)
    }
    place()
  }

  /// The entities in each column: breadth first, beginning with the most connected entity of each connected component.
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
      "<title>\(model.entities.count) entities and their relationships</title>",
      "<style>text{font:13px ui-monospace,monospace;fill:#1f2328}.e{font-weight:bold}.a{font-style:italic}.t{fill:#57606a}.r{fill:#0a4a8f}"
        + "rect{fill:#fff;stroke:#8c959f}.h{fill:#e8eef7}path{fill:none;stroke:#57606a}.s{stroke-dasharray:5 4}"
        + "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.t{fill:#9198a1}.r{fill:#79b8ff}rect{fill:#151b23;stroke:#656c76}.h{fill:#26303d}path{stroke:#9198a1}}</style>",
    ]
    for entity in model.entities {
      if let above = entity.superentityIndex { lines += curve((entity.name, nil), (model.entities[above].name, nil), isDashed: true) }
    }
    for edge in edges { lines += curve((edge.source, edge.name), (edge.destination, edge.inverseName), isDashed: false) }
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
      lines.append(SVGGraph.text(line.name, row < box.attributeCount ? "" : "r", x + 8, below))
      lines.append(SVGGraph.text(line.type, "t", x + box.width - 8, below, anchor: "end"))
    }
    return lines
  }

  /// A curve between two lines, from the sides that face each other. Boxes in the same column are connected at their right sides.
  private func curve(
    _ source: (entity: String, relationship: String?), _ destination: (entity: String, relationship: String?), isDashed: Bool
  ) -> [String] {
    guard let a = boxes[source.entity], let b = boxes[destination.entity] else { return [] }
    let isBeside = a.x == b.x, rightwards = a.x <= b.x
    let start = (x: rightwards ? a.x + a.width : a.x, y: a.middle(of: source.relationship))
    let end = (x: isBeside || !rightwards ? b.x + b.width : b.x, y: b.middle(of: destination.relationship))
    let bend = isBeside ? min(30 + abs(end.y - start.y) / 12, 90) : max(abs(end.x - start.x) / 2, 30) * (rightwards ? 1 : -1)
    let points = [start.x, start.y, start.x + bend, start.y, isBeside ? end.x + bend : end.x - bend, end.y, end.x, end.y].map(
      SVGGraph.number)
    return ["<path\(isDashed ? " class=\"s\"" : "") d=\"M\(points[0]) \(points[1])C\(points[2...].joined(separator: " "))\"/>"]
  }

  private static func text(_ text: String, _ style: String, _ x: Double, _ y: Double, anchor: String = "start") -> String {
    let anchor = anchor == "start" ? "" : " text-anchor=\"\(anchor)\""
    return
      "<text\(style.isEmpty ? "" : " class=\"\(style)\"") x=\"\(number(x))\" y=\"\(number(y))\"\(anchor)>\(XMLText.escaped(text))</text>"
  }

  private static func number(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
  }
}
