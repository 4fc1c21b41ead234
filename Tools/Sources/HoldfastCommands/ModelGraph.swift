import Foundation
public import HoldfastStore

/// Draws a model: entities with their attributes, and how they are related.
public enum ModelGraph {
  /// How a drawing is written.
  public enum Format: String, CaseIterable, Sendable {
    /// A Mermaid entity-relationship diagram, which code hosts and editors show.
    case mermaid
    /// Graphviz's language.
    case dot
    /// A picture.
    case svg
  }

  /// The drawing of a version of the model at a path; of the current one unless a name is given.
  ///
  /// - Throws: ``CommandError`` when that version cannot be read.
  public static func text(path: String, version name: String? = nil, _ format: Format) throws(CommandError) -> String {
    text(try ModelSource(path: path).version(name).model, format)
  }

  /// The drawing of a model.
  public static func text(_ model: ManagedObjectModel, _ format: Format) -> String {
    switch format {
    case .mermaid: MermaidGraph.text(model)
    case .dot: DotGraph.text(model)
    case .svg: SVGGraph(model).text()
    }
  }
}

/// A relationship and its inverse as one line of a drawing.
struct GraphEdge: Hashable {
  let source: String
  let destination: String
  let name: String
  /// The inverse's name; nil for none, and for a relationship that is its own inverse.
  let inverseName: String?
  let isToMany: Bool
  let isOptional: Bool
  /// Of the inverse; to-many where there is none, since any number of objects can lead to one then.
  let inverseIsToMany: Bool
  let inverseIsOptional: Bool

  /// The relationship's name, and its inverse's behind a slash.
  var label: String { name + (inverseName.map { " / \($0)" } ?? "") }

  /// All of them, each pair once, in the order of entities and names.
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

/// What stands in an entity's box.
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

  /// In quotation marks nothing is a word of the language (`class`, `end`, `one`, `to` …), and there is no way to say one.
  private static func quoted(_ name: String) -> String { "\"\(name.filter { $0 != "\"" })\"" }

  /// The name of an attribute, which cannot be quoted. Three would be taken for marks of keys.
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

  /// In quotation marks nothing is a word of the language (`node`, `edge`, `graph` …, in capitals or not).
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
