import Foundation
public import HoldfastStore

/// Draws a model: its entities with their attributes and relationships.
public enum ModelGraph {
  /// The format of a drawing.
  public enum Format: String, CaseIterable, Sendable {
    /// A Mermaid entity-relationship diagram, which code hosts and editors can display.
    case mermaid
    /// The language of Graphviz.
    case dot
    /// An SVG image.
    case svg
  }

  /// Draws a version of the model at a path. The version defaults to the current one.
  ///
  /// - Throws: ``CommandError`` if that version can't be read.
  public static func text(path: String, version name: String? = nil, _ format: Format) throws(CommandError) -> String {
    text(try ModelSource(path: path).version(name).model, format)
  }

  /// Draws a model.
  public static func text(_ model: ManagedObjectModel, _ format: Format) -> String {
    switch format {
    case .mermaid: MermaidGraph.text(model)
    case .dot: DotGraph.text(model)
    case .svg: SVGGraph(model).text()
    }
  }
}

/// A relationship and its inverse, drawn as one line.
struct GraphEdge: Hashable {
  let source: String
  let destination: String
  let name: String
  /// The inverse's name; nil if there is none, or if the relationship is its own inverse.
  let inverseName: String?
  let isToMany: Bool
  let isOptional: Bool
  /// Whether the inverse is to-many. True without an inverse, because any number of objects can then point to the same destination.
  let inverseIsToMany: Bool
  let inverseIsOptional: Bool

  /// The relationship's name, followed by a slash and its inverse's name.
  var label: String { name + (inverseName.map { " / \($0)" } ?? "") }

  /// All edges, one per pair, sorted by entity and name.
  static func all(_ model: ManagedObjectModel) -> [GraphEdge] {
    var edges: [GraphEdge] = []
    for entity in model.entities {
      for relationship in entity.ownRelationships {
        let inverse = model.inverse(of: relationship)
        let destination = model.destination(of: relationship)
        if let inverse, (destination.index, inverse.index) < (entity.index, relationship.index) { continue }
        edges.append(
          GraphEdge(
            source: entity.name, destination: destination.name, name: relationship.name,
            inverseName: relationship.isReflexive ? nil : inverse?.name, isToMany: relationship.isToMany,
            isOptional: relationship.isOptional, inverseIsToMany: inverse?.isToMany ?? true, inverseIsOptional: inverse?.isOptional ?? true)
        )
      }
    }
    return edges
  }
}

/// The contents of an entity's box.
enum GraphLines {
  static func attributes(_ entity: ManagedObjectModel.Entity) -> [(name: String, type: String)] {
    entity.declaration.attributes.sorted { $0.name < $1.name }.map {
      ($0.name, AttributeWords.type($0) + ($0.isOptional ? "?" : ""))
    }
  }
}

enum MermaidGraph {
  static func text(_ model: ManagedObjectModel) -> String {
    var lines = ["erDiagram"]
    for entity in model.entities {
      lines.append("  \(quoted(entity.name)) {")
      for attribute in GraphLines.attributes(entity) {
        let type = attribute.type.map { $0.isLetter || $0.isNumber ? $0 : "_" }
        lines.append("    \(String(type)) \(attributeName(attribute.name))")
      }
      lines.append("  }")
    }
    for entity in model.entities {
      if let above = entity.superentityIndex {
        lines.append("  \(quoted(model.entities[above].name)) ||..|| \(quoted(entity.name)) : \"is a\"")
      }
    }
    for edge in GraphEdge.all(model) {
      let near = edge.inverseIsToMany ? "}o" : edge.inverseIsOptional ? "|o" : "||"
      let far = edge.isToMany ? "o{" : edge.isOptional ? "o|" : "||"
      lines.append("  \(quoted(edge.source)) \(near)--\(far) \(quoted(edge.destination)) : \(quoted(edge.label))")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Quotes a name, because keywords (`class`, `end`, `one`, `to` and so on) have no meaning inside quotation marks. Removes quotation
  /// marks, which can't be escaped.
  private static func quoted(_ name: String) -> String { "\"\(name.filter { $0 != "\"" })\"" }

  /// The name of an attribute, which can't be quoted. Three names get an underscore, because Mermaid would read them as key markers.
  private static func attributeName(_ name: String) -> String { ["pk", "fk", "uk"].contains(name.lowercased()) ? name + "_" : name }
}

enum DotGraph {
  static func text(_ model: ManagedObjectModel) -> String {
    var lines = [
      "digraph model {", "  rankdir=LR;", "  node [shape=plain, fontname=\"Helvetica\"];", "  edge [fontname=\"Helvetica\", fontsize=10];",
    ]
    for entity in model.entities {
      let name = entity.isAbstract ? "<i>\(XMLText.escaped(entity.name))</i>" : "<b>\(XMLText.escaped(entity.name))</b>"
      let rows = GraphLines.attributes(entity).map {
        "<tr><td align=\"left\">\(XMLText.escaped($0.name))</td><td align=\"left\">\(XMLText.escaped($0.type))</td></tr>"
      }
      lines.append(
        "  \(quoted(entity.name)) [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"4\">"
          + "<tr><td colspan=\"2\" bgcolor=\"#e8eef7\">\(name)</td></tr>\(rows.joined())</table>>];")
    }
    for entity in model.entities {
      if let above = entity.superentityIndex {
        lines.append("  \(quoted(entity.name)) -> \(quoted(model.entities[above].name)) [arrowhead=empty, style=dashed];")
      }
    }
    for edge in GraphEdge.all(model) {
      let head = edge.isToMany ? "crow" : "tee", tail = edge.inverseIsToMany ? "crow" : "tee"
      lines.append(
        "  \(quoted(edge.source)) -> \(quoted(edge.destination)) "
          + "[dir=both, arrowhead=\(head), arrowtail=\(tail), label=\(quoted(edge.label))];")
    }
    return (lines + ["}"]).joined(separator: "\n") + "\n"
  }

  /// Quotes a name, because keywords (`node`, `edge`, `graph` and so on, in any case) have no meaning inside quotation marks.
  private static func quoted(_ name: String) -> String { "\"\(name.replacingOccurrences(of: "\"", with: "\\\""))\"" }
}

/// Text in XML.
enum XMLText {
  static func escaped(_ text: String) -> String {
    var out = ""
    for character in text {
      switch character {
      case "&": out += "&amp;"
      case "<": out += "&lt;"
      case ">": out += "&gt;"
      case "\"": out += "&quot;"
      default: out.append(character)
      }
    }
    return out
  }
}
