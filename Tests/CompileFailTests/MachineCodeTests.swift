import Foundation
import TestSupport
import Testing

/// What the optimizer makes of the accessors that macros and generated code have.
@Suite struct MachineCodeTests {
  /// The slot of `milk` is a sum over a superclass, a composite and a property before it. All of that is known when the getter is compiled.
  private static let classes = """
    import Holdfast

    struct Point: CompositeAttributeValue {
      var x = 0.0
      var y = 0.0
      static let elements: CompositeElements<Point> = [.attribute("x", \\.x), .attribute("y", \\.y)]
      static var slotCount: Int { 2 }
    }
    class Animal: ManagedObject {
      enum Slots { static var home: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) } }
      enum SlotCounts { static var slots: Int { Slots.home.rawValue + slotCount(of: Point.self) } }
    }
    final class Cow: Animal {
      enum Slots {
        static var field: SlotIndex { SlotIndex(Animal.SlotCounts.slots) }
        static var milk: SlotIndex { field.advanced(by: slotCount(of: Point?.self)) }
      }
      var milk: Double {
        get { self[property: Slots.milk] }
        set { self[property: Slots.milk] = newValue }
      }
    }
    @inline(never) public func readMilk(_ object: ManagedObject) -> Double { unsafeDowncast(object, to: Cow.self).milk }
    @inline(never) public func writeMilk(_ object: ManagedObject, _ value: Double) { unsafeDowncast(object, to: Cow.self).milk = value }

    """

  @Test func readingANumberIsTwoTestsAndALoadWithoutAllocation() throws {
    let instructions = try MachineCode.instructions(of: "readMilk", in: Self.classes)
    #expect(instructions.contains { $0.hasPrefix("ret") }, "\(instructions)")
    // A wrong slot and a fault: both calls are behind a test that fails for an object that was read.
    let calls = instructions.filter { $0.hasPrefix("call") || $0.hasPrefix("bl\t") }
    #expect(calls.count == 2, "\(calls)")
    #expect(calls.contains { $0.contains("checkUntabulated") } && calls.contains { $0.contains("fireFault") }, "\(calls)")
    #expect(instructions.count < 25, "\(instructions.joined(separator: "\n"))")
  }

  @Test(arguments: ["readMilk", "writeMilk"]) func anAccessorIsTheCodeOfOneWithASlotWrittenByHand(_ function: String) throws {
    let byHand = Self.classes.replacingOccurrences(of: "self[property: Slots.milk]", with: "self[4]")
    let codes = try [Self.classes, byHand].map { source in
      // The numbers of labels depend on the other functions.
      try MachineCode.instructions(of: function, in: source).map { $0.replacing(/\.LBB\d+_/, with: ".LBB_") }
    }
    #expect(byHand != Self.classes && codes[0].contains { $0.hasPrefix("ret") } && codes[0] == codes[1])
  }
}

/// The assembly code of a program.
enum MachineCode {
  /// The instructions of a function of a file, compiled with optimization against the modules beside the test bundle.
  static func instructions(of function: String, in source: String) throws -> [String] {
    let folder = TemporaryFolder(), file = folder.file("Source.swift"), assembly = folder.file("Source.s")
    try folder.write(source, to: "Source.swift")
    let modules = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Modules").path
    let flags = ["-emit-assembly", "-O", "-wmo", "-parse-as-library", "-swift-version", "6", "-I", modules]
    let errors = try Program.run("/usr/bin/env", ["swiftc"] + flags + [file, "-o", assembly]).errors
    let lines = try #require(try? String(contentsOfFile: assembly, encoding: .utf8), "\(errors)").split(separator: "\n")
    let start = try #require(lines.firstIndex { !$0.hasPrefix("\t") && $0.contains(function) && $0.contains(":") })
    let body = lines[(start + 1)...].prefix { !$0.contains("cfi_endproc") }
    return body.filter { $0.hasPrefix("\t") && !$0.hasPrefix("\t.") }.map { String($0.dropFirst()) }
  }
}
