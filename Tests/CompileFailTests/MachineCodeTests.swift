import Foundation
import Synchronization
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

  /// Properties of the other kinds.
  private static let others = """
    import Holdfast

    final class Bull: ManagedObject {
      enum Slots {
        static var colour: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
        static var mood: TransientIndex { TransientIndex(ManagedObject.SlotCounts.transients + 0) }
        static var rival: TransientLinkIndex { TransientLinkIndex(ManagedObject.SlotCounts.transientLinks + 0) }
      }
      var colour: [Int]? {
        get { self[property: TransformableSlot(Slots.colour)] }
        set { self[property: TransformableSlot(Slots.colour)] = newValue }
      }
      var mood: Int {
        get { self[property: Slots.mood] ?? 3 }
        set { self[property: Slots.mood] = newValue }
      }
      var rival: Bull? {
        get { self[property: Slots.rival] }
        set { self[property: Slots.rival] = newValue }
      }
    }
    @inline(never) public func readColour(_ object: ManagedObject) -> [Int]? { unsafeDowncast(object, to: Bull.self).colour }
    @inline(never) public func readMood(_ object: ManagedObject) -> Int { unsafeDowncast(object, to: Bull.self).mood }
    @inline(never) public func readRival(_ object: ManagedObject) -> ManagedObject? { unsafeDowncast(object, to: Bull.self).rival }
    @inline(never) public func writeMood(_ object: ManagedObject, _ value: Int) { unsafeDowncast(object, to: Bull.self).mood = value }
    @inline(never) public func writeRival(_ object: ManagedObject) { unsafeDowncast(object, to: Bull.self).rival = nil }

    """

  @Test(arguments: ["readColour", "readMood", "readRival", "writeMood", "writeRival"])
  func theSubscriptOfEveryPropertyCostsNothing(_ function: String) throws {
    let byHand = Self.others.replacingOccurrences(of: "self[property: TransformableSlot(Slots.colour)]", with: "self[transformable: 0]")
      .replacingOccurrences(of: "self[property: Slots.mood]", with: "self[transient: 0]")
      .replacingOccurrences(of: "get { self[property: Slots.rival] }", with: "get { transientToOne(0) }")
      .replacingOccurrences(of: "self[property: Slots.rival] = newValue", with: "setTransientToOne(0, newValue)")
    let codes = try [Self.others, byHand].map { source in
      try MachineCode.instructions(of: function, in: source).map { $0.replacing(/\.LBB\d+_/, with: ".LBB_") }
    }
    #expect(!byHand.contains("self[property") && codes[0].contains { $0.hasPrefix("ret") } && codes[0] == codes[1])
  }

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
  /// The code of the programs that were compiled. Several functions of each program are compared.
  private static let compiled = Mutex<[String: String]>([:])

  /// The instructions of a function of a file, compiled with optimization against the modules beside the test bundle.
  static func instructions(of function: String, in source: String) throws -> [String] {
    let lines = try assembly(of: source).split(separator: "\n")
    let start = try #require(lines.firstIndex { !$0.hasPrefix("\t") && $0.contains(function) && $0.contains(":") })
    let body = lines[(start + 1)...].prefix { !$0.contains("cfi_endproc") }
    return body.filter { $0.hasPrefix("\t") && !$0.hasPrefix("\t.") }.map { String($0.dropFirst()) }
  }

  /// Tests that need the same program at the same time wait for one compiler.
  private static func assembly(of source: String) throws -> String {
    try compiled.withLock { compiled in
      if let known = compiled[source] { return known }
      let folder = TemporaryFolder(), file = folder.file("Source.swift"), assembly = folder.file("Source.s")
      try folder.write(source, to: "Source.swift")
      let modules = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Modules").path
      let flags = ["-emit-assembly", "-O", "-wmo", "-parse-as-library", "-swift-version", "6", "-I", modules]
      let errors = try Program.run("/usr/bin/env", ["swiftc"] + flags + [file, "-o", assembly]).errors
      let code = try #require(try? String(contentsOfFile: assembly, encoding: .utf8), "\(errors)")
      compiled[source] = code
      return code
    }
  }
}
