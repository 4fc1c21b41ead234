import Foundation
import HoldfastPropertyList
import TestSupport

/// The text of an `xcmapping.xml`, as Xcode writes it.
struct MappingModelText {
  /// The source of a property: the property of the same name unless something is set.
  struct Property {
    var name: String
    /// The fields "Key Path" and "Mapping Name" of Xcode's inspector.
    var path: String?
    var mapping: String?
    var expression: [UInt8]?

    init(_ name: String, path: String? = nil, mapping: String? = nil, expression: [UInt8]? = nil) {
      (self.name, self.path, self.mapping, self.expression) = (name, path, mapping, expression)
    }
  }

  private var objects: [String] = []
  private var mappings: [String] = []
  private var next = 102
  var source = "App/Zoo.xcdatamodeld/Zoo.xcdatamodel"
  var destination = "App/Zoo.xcdatamodeld/Zoo 2.xcdatamodel"

  /// Adds an entity mapping.
  mutating func map(
    _ source: String?, to destination: String?, name: String? = nil, policy: String? = nil, filter: String? = nil,
    attributes: [Property] = [], relationships: [Property] = []
  ) {
    func properties(_ list: [Property], _ type: String) -> String {
      list.map { property in
        object(
          type,
          [
            "name": property.name, "sourcekeypath": property.path, "sourcemappingname": property.mapping,
            "valueexpressiondata": property.expression.map { Data($0).base64EncodedString() },
          ], "")
      }.joined(separator: " ")
    }
    let attributes = properties(attributes, "XDDEVATTRIBUTEMAPPING")
    let relationships = properties(relationships, "XDDEVRELATIONSHIPMAPPING")
    mappings.append(
      object(
        "XDDEVENTITYMAPPING",
        [
          "sourcename": source, "destinationname": destination, "name": name, "migrationpolicyclassname": policy,
          "sourcefilterpredicatestring": filter, "mappingnumber": "\(mappings.count + 1)",
        ], list("attributemappings", attributes) + list("relationshipmappings", relationships)))
  }

  private func list(_ name: String, _ ids: String) -> String {
    "<relationship name=\"\(name)\" type=\"0/0\" idrefs=\"\(ids)\"></relationship>"
  }

  private mutating func object(_ type: String, _ values: [String: String?], _ lists: String) -> String {
    let id = "z\(next)"
    next += 1
    let attributes = values.sorted { $0.key < $1.key }.compactMap { name, value in
      value.map {
        "<attribute name=\"\(name)\" type=\"string\">\($0.replacing("&", with: "&amp;").replacing("<", with: "&lt;"))</attribute>"
      }
    }
    objects.append("<object type=\"\(type)\" id=\"\(id)\">\(attributes.joined())\(lists)</object>")
    return id
  }

  var text: String {
    var copy = self
    let values = ["sourcemodelpath": source, "destinationmodelpath": destination]
    _ = copy.object("XDDEVMAPPINGMODEL", values, list("entitymappings", mappings.joined(separator: " ")))
    return """
      <?xml version="1.0" standalone="no"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">
      <database>
      \(copy.objects.joined(separator: "\n"))
      </database>
      """
  }

  /// Writes the folder, and returns its path.
  func write(to folder: TemporaryFolder, _ name: String = "Mapping") throws -> String {
    try folder.write(text, to: "\(name).xcmappingmodel/xcmapping.xml")
    return folder.file("\(name).xcmappingmodel")
  }
}

/// An archived `NSExpression`.
indirect enum TestExpression: Sendable {
  case variable(String)
  case constant(PropertyList)
  case path(TestExpression, String)
  /// A method of a variable.
  case method(TestExpression, String, [TestExpression])
  /// A function of predicates.
  case function(String, [TestExpression])
  case aggregate([TestExpression])
  case conditional(TestPredicate, TestExpression, TestExpression)
  case subquery(TestExpression, String, TestPredicate)

  static let source = TestExpression.variable("source")

  static func text(_ text: String) -> TestExpression { .constant(.string(text)) }
  static func number(_ number: Int64) -> TestExpression { .constant(.integer(number)) }

  var archive: [UInt8] {
    let archive = TestArchive()
    return archive.bytes(root: archive.code(self))
  }
}

/// An archived `NSPredicate`.
indirect enum TestPredicate: Sendable {
  case truth(Bool)
  /// NOT is 0, AND is 1, OR is 2.
  case compound(Int64, [TestPredicate])
  /// The numbers are those of `NSComparisonPredicate`.
  case comparison(TestExpression, Int64, TestExpression, options: Int64 = 0, modifier: Int64 = 0)

  static func not(_ part: TestPredicate) -> TestPredicate { .compound(0, [part]) }
  static func and(_ parts: TestPredicate...) -> TestPredicate { .compound(1, parts) }
  static func or(_ parts: TestPredicate...) -> TestPredicate { .compound(2, parts) }
}
