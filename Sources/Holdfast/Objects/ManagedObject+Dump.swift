import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ManagedObject {
  /// The object's stored values as text, for debugging: a line for each property, in the order of the names.
  ///
  /// ```swift
  /// print(fido.dump(depth: 1))
  /// ```
  ///
  /// Reads the object, and the relationships and destinations to the given depth. An object that was shown before has only its ID. Text and
  /// bytes are shortened to 60 characters; don't write the result to a log that others read, since it contains the values.
  ///
  /// - Parameter depth: The number of relationships to follow, up to 32. With 0, the default, destinations are shown by their IDs.
  /// - Returns: The text. A property that can't be read has the error in the place of its value.
  public final func dump(depth: Int = 0) -> String {
    // The objects themselves: another object could get the address of one that was released.
    var shown: Set<ManagedObject> = []
    return lines(depth: min(max(depth, 0), ManagedObject.maximumDumpDepth), &shown).joined(separator: "\n")
  }

  /// Each level takes memory of the stack, and indents all lines of the levels below.
  private static let maximumDumpDepth = 32

  private func lines(depth: Int, _ shown: inout Set<ManagedObject>) -> [String] {
    if !shown.insert(self).inserted { return ["\(description) (shown above)"] }
    var lines: [String] = []
    for name in (entity.slots.map(\.name) + entity.toManyRelationships.map(\.name)).sorted() {
      let value: PropertyValue
      do { value = try self.value(forKeyPath: name) } catch {
        lines.append("  \(name): <\(error)>")
        continue
      }
      lines += ManagedObject.lines(name, value, self, depth: depth, &shown)
    }
    return [description] + lines
  }

  private static func lines(
    _ name: String, _ value: PropertyValue, _ owner: ManagedObject, depth: Int, _ shown: inout Set<ManagedObject>
  ) -> [String] {
    var destinations = value.objects ?? []
    if case .single(.objectID(let id)) = value, owner.entity.relationship(named: name) != nil {
      destinations = (try? owner.context.object(with: id)).map { [$0] } ?? []
    }
    if destinations.isEmpty { return ["  \(name): \(value.objects == nil ? text(value) : "none")"] }
    if depth == 0 { return ["  \(name): " + destinations.map(\.objectID.uriRepresentation).joined(separator: ", ")] }
    return ["  \(name):"] + destinations.flatMap { $0.lines(depth: depth - 1, &shown).map { "    \($0)" } }
  }

  private static func text(_ value: PropertyValue) -> String {
    guard case .single(let single) = value else { return "\(value)" }
    let text: String
    switch single {
    case .null: return "nil"
    case .string(let value): text = "\"\(value)\""
    case .data(let bytes): return "\(bytes.count) bytes"
    case .bool(let value): return "\(value)"
    case .int16(let value): return "\(value)"
    case .int32(let value): return "\(value)"
    case .int64(let value): return "\(value)"
    case .float(let value): return "\(value)"
    case .double(let value): return "\(value)"
    case .decimal(let value): return "\(value)"
    case .date(let seconds): return ManagedObject.text(ofDate: seconds)
    case .uuid(let value): return value.uuidString
    case .uri(let value): text = value
    case .externalData: return "bytes in a file"
    case .objectID(let id): return id.uriRepresentation
    }
    return text.count > 60 ? text.prefix(59) + "…" : text
  }

  private static func text(ofDate seconds: Double) -> String {
    let years = Date.distantPast.timeIntervalSinceReferenceDate...Date.distantFuture.timeIntervalSinceReferenceDate
    // Foundation describes no other dates, and its description of NaN traps on Linux.
    return years.contains(seconds) ? "\(Date(timeIntervalSinceReferenceDate: seconds))" : "\(seconds) seconds since 2001"
  }
}
